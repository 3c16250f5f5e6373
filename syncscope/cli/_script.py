"""The script that a command is to run, as the user names it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from syncscope.discover import did_you_mean
from syncscope.errors import UserError

USAGE = 2  # the exit code of a program that does not know its arguments


def script(path: str, command: str) -> str:
    """The script, if it is one.

    Raises:
        UserError: there is none.
    """
    if path.startswith("-") and not os.path.exists(path):
        own = [name for option in click.get_current_context().command.params for name in option.opts]
        hint = (
            did_you_mean(path, own)
            or f"`syncscope {command} --help` lists the options; those of the program stand behind it"
        )
        raise UserError(f"{command} has no option {path.partition('=')[0]}", hint)
    if os.path.isdir(path):
        raise UserError(f"{path} is a directory", f"give a script, or a module: syncscope {command} -m package.train")
    if not os.path.isfile(path):
        raise UserError(f"{path}: no such script", "give the script as you give it to python")
    if path.endswith((".json", ".json.gz", ".records")):
        raise UserError(f"{path} is a recording, and {command} takes the program", f"syncscope {command} train.py")
    if path.endswith(".ipynb"):
        raise UserError(f"{path} is a notebook, and Python runs scripts", f"jupyter nbconvert --to script {path}")
    return path


def misplaced(arguments: Sequence[str]) -> str:
    """A hint where the program was given an option that is one of ours: `syncscope run train.py --device ocl`; "" else."""
    own = {name for option in click.get_current_context().command.params for name in option.opts}
    known = next((word for word in arguments if word.startswith("--") and word.partition("=")[0] in own), None)
    return f"{known} went to the program: options of syncscope stand before it" if known else ""
