"""The script that a command is to run, as the user names it."""

from __future__ import annotations

import os

from syncscope.errors import UserError


def script(path: str, command: str) -> str:
    """The script, if it is one.

    Raises:
        UserError: there is none.
    """
    if os.path.isdir(path):
        raise UserError(f"{path} is a directory", f"give a script, or a module: syncscope {command} -m package.train")
    if not os.path.isfile(path):
        raise UserError(f"{path}: no such script", "give the script as you give it to python")
    if path.endswith(".ipynb"):
        raise UserError(f"{path} is a notebook, and Python runs scripts", f"jupyter nbconvert --to script {path}")
    return path
