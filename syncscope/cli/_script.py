"""The script that a command is to run, as the user names it."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence

import click

from syncscope.discover import did_you_mean
from syncscope.errors import UserError

USAGE = 2  # the exit code of a program that does not know its arguments


class ProgramCommand(click.Command):
    """A command that takes a program: what follows the script, or `-m MODULE`, is the program's, as with python."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, which would go on looking for options behind that of the module."""
        at = _behind_module(args, {name for option in self.params if _takes_value(option) for name in option.opts})
        return super().parse_args(ctx, [*args[:at], "--", *args[at:]] if at else args)


def _takes_value(option: click.Parameter) -> bool:
    """Whether the word behind an option is its value."""
    return isinstance(option, click.Option) and not option.is_flag


def _behind_module(args: Sequence[str], valued: Container[str]) -> int:
    """Where the arguments of a module begin; 0 where no module is named before the program."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--":
        word = args[at]
        at += 2 if word in valued else 1
        if word.startswith("-m"):  # `-mMODULE`, too
            return at if at <= len(args) else 0
    return 0


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
