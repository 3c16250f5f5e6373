"""Runs programs as `verify` does, but for its steps, each in a process that is forked from this one, which has all imported.

A line of JSON asks for one: what hears it, its folder, environment and journal, the program. A line answers: its exit code.
"""

import json
import os
import shutil  # noqa: F401  # for the programs
import socket
import sqlite3  # noqa: F401
import subprocess  # noqa: F401
import sys
from pathlib import Path
from typing import Any

from syncscope.verify import audited, journal, notified


def watch(
    heard_by: str,
    folder: str,
    environment: dict[str, str],
    path: str,
    preparing: bool,
    large: tuple[int, int],
    program: str,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    journal.LARGEST, journal.EMPTIED = large
    noted = journal.Journal(Path(path), lambda: preparing, hears_all=heard_by == "kernel")
    asking, told = socket.socketpair()
    child = os.fork()
    if child == 0:
        told.close()
        if heard_by == "kernel":
            notified.ask(asking)
        else:
            audited.listen(noted)
        names: dict[str, Any] = dict(globals())
        exec(program, names)
        sys.stdout.flush()
        os._exit(0)
    asking.close()
    ears = notified.Ears(noted)
    if heard_by == "kernel":
        ears.hear(told)
    while not os.waitpid(child, os.WNOHANG)[0]:
        ears.wait(told.fileno(), 0.02)


if __name__ == "__main__":
    for line in sys.stdin:
        watcher = os.fork()
        if watcher == 0:
            watch(**json.loads(line))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]), flush=True)
