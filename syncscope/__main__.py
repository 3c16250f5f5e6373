"""`python -m syncscope` is `syncscope`."""

import contextlib
import os
import sys

with contextlib.suppress(FileNotFoundError):  # the folder is gone
    if sys.path and sys.path[0] in ("", os.getcwd()):  # a repository that is linted may hold a click.py
        # as for the command itself; `run` puts its program's folder there
        sys.path[0] = os.path.dirname(sys.executable)

from syncscope.cli import main

main()
