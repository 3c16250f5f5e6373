"""argv in, exit code out: the only room that prints. One command, one file; each imports its rooms when it is called."""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import Any

import click

from syncscope import discover
from syncscope.cli._console import complain, echo, plain
from syncscope.errors import UserError

PATH = ("lint", "run", "report", "verify", "diff")  # what everybody needs, in the order in which it is needed
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)  # why what is printed may not arrive


class OutputClosedError(Exception):
    """Whoever read our output has closed it."""


class Commands(click.Group):
    """The commands are the modules of this folder; each holds a `command`, and only the one that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The modules' names."""
        return discover.names(sys.modules[__name__])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those that everybody needs stand first, as a path; the others below."""
        names = self.list_commands(ctx)
        for title, listed in (("Commands", PATH), ("More", [name for name in names if name not in PATH])):
            found = [(name, command) for name in listed if (command := self.get_command(ctx, name))]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(limit=80)) for name, command in found])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The `command` in the module of that name."""
        try:
            found: click.Command = discover.load(sys.modules[__name__], name).command
        except UserError:
            return None
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with a hint where the name is misspelt."""
        if args[:1] != ["run"]:  # its streams are those of the program
            forgive()
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise UserError(
                f"no command is called {args[0]!r}", discover.did_you_mean(args[0], self.list_commands(ctx))
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, but for a closed pipe: click would exit with 1, which means findings."""
        if plain():
            ctx.color = False
        try:
            code = super().invoke(ctx)
            if ctx.invoked_subcommand != "run":
                sys.stdout.flush()  # else the interpreter would find out as it ends
        except BrokenPipeError:
            raise OutputClosedError from None
        except click.NoSuchOption as error:
            if others := self._that_have(ctx, error.option_name):
                asked = ctx.invoked_subcommand
                raise UserError(f"`syncscope {asked}` has no {error.option_name}", f"{others} has it") from None
            raise
        return code

    def _that_have(self, ctx: click.Context, option: str) -> str:
        """The commands that have this option; "" where none has."""
        having = [
            f"`syncscope {name}`"
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) and any(option in one.opts for one in command.params)
        ]
        return ", ".join(having)


def forgive() -> None:
    """Let the streams take any text: signs that they cannot show are replaced, and one that is closed swallows all.

    A closed standard input is empty.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  as long as the process
        elif hasattr(stream, "reconfigure"):
            is_utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if is_utf8 else "replace")  # names of files may be no text


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="syncscope")
def commands() -> None:
    """Find the lines of a GPU training loop where the host waits, what each costs, and the rewrite.

    \b
    syncscope lint train.py        before running: the hazards and their fixes
    syncscope run train.py         while running: what waited, on which line
    syncscope report run.json.gz   after: what each line costs, from any torch.profiler trace
    syncscope verify train.py      the proof: the rewrites tried, faster or not, the values the same or not
    syncscope diff a.gz b.gz       two recordings: what became of each line, and of the step
    """


def main() -> None:
    """Run the command line; 0 is clean, 1 is findings, 2 is an error of usage or input, 130 is Ctrl-C."""
    occupy()
    try:
        code = ended()
    except OSError:  # nobody is left to whom it could be told
        abandon(1, 2)
        code = 2
    sys.exit(code)


def occupy() -> None:
    """Give every standard stream that is closed a file that swallows all: its number would else be that of the next file that
    is opened, here or in a program that is started, and what is printed would go into that."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            os.set_inheritable(number, True)


def ended() -> int:
    """Run the command line and say what went wrong; the exit code.

    Raises:
        OSError: it cannot even be said.
    """
    try:
        code: int = commands.main(standalone_mode=False) or 0
        gc.freeze()  # the interpreter need not look through all that is alive for garbage before it ends
        return code
    except UserError as error:
        complain(error)
    except click.ClickException as error:
        error.show()
    except (click.Abort, KeyboardInterrupt):
        echo("interrupted", err=True)
        return 130
    except OutputClosedError:
        abandon(1)
        return 141
    except Exception as error:  # our bug; but 1 would say that there are findings
        if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
            abandon(1)
            complain(UserError(f"the output cannot be written: {error.strerror}"))
        elif isinstance(error, FileNotFoundError) and error.filename is None:  # as os.getcwd raises it
            complain(UserError("the folder that you are in is gone", "go to one that is there"))
        else:
            import traceback

            echo(traceback.format_exc(), err=True, nl=False)
            echo("this is a bug of syncscope: please report it with the lines above", err=True)
    return 2


def abandon(*streams: int) -> None:
    """Nothing more reaches these, also not what is still to be flushed as the process ends, and would change its exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(null, stream)
    os.close(null)
