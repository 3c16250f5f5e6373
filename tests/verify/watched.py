"""Runs a program as `verify` does, but for its steps: `watched.py kernel|python JOURNAL PREPARING LARGEST EMPTIED PROGRAM`."""

import os
import shutil  # noqa: F401  # for the program
import socket
import sqlite3  # noqa: F401
import subprocess  # noqa: F401
import sys
from pathlib import Path

from syncscope.verify import audited, journal, notified

heard_by, path, preparing, largest, emptied, program = sys.argv[1:]
journal.LARGEST, journal.EMPTIED = int(largest), int(emptied)
noted = journal.Journal(Path(path), lambda: preparing == "True", hears_all=heard_by == "kernel")
asking, told = socket.socketpair()
child = os.fork()
if child == 0:
    told.close()
    if heard_by == "kernel":
        notified.ask(asking)
    else:
        audited.listen(noted)
    exec(program)
    sys.stdout.flush()
    os._exit(0)
asking.close()
ears = notified.Ears(noted)
if heard_by == "kernel":
    ears.hear(told)
while not os.waitpid(child, os.WNOHANG)[0]:
    ears.wait(told.fileno(), 0.02)
