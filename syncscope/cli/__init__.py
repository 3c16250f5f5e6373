"""argv in, exit code out: the only room that prints. One command, one file; each imports its rooms when it is called."""

from __future__ import annotations

import gc
import sys
from typing import Any

import click

from syncscope import discover
from syncscope.errors import UserError


class Commands(click.Group):
    """The commands are the modules of this folder; each holds a `command`, and only the one that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The modules' names."""
        return discover.names(sys.modules[__name__])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The `command` in the module of that name."""
        if name not in self.list_commands(ctx):
            return None
        found: click.Command = discover.load(sys.modules[__name__], name).command
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with a hint where the name is misspelt."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise UserError(
                f"no command is called {args[0]!r}", discover.did_you_mean(args[0], self.list_commands(ctx))
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="syncscope")
def commands() -> None:
    """Find the lines of a GPU training loop where the host waits, what each costs, and the rewrite.

    \b
    syncscope lint train.py        before running: the hazards and their fixes
    syncscope run train.py         while running: what waited, on which line
    syncscope report run.json.gz   after: what each line costs, from any torch.profiler trace
    """


def main() -> None:
    """Run the command line; 0 is clean, 1 is findings, 2 is an error of usage or input, 130 is Ctrl-C."""
    try:
        code = commands.main(standalone_mode=False) or 0
        gc.freeze()  # the interpreter need not look through all that is alive for garbage before it ends
        sys.exit(code)
    except UserError as error:
        click.echo(f"{click.style('error', fg='red', bold=True)}: {error.message}", err=True)
        if error.hint:
            click.echo(f"{click.style(' hint', fg='cyan')}: {error.hint}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception:  # our bug; but 1 would say that there are findings
        import traceback

        traceback.print_exc()
        click.echo("this is a bug of syncscope: please report it with the lines above", err=True)
        sys.exit(2)
