"""`syncscope lsp`: the linter in an editor."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from syncscope.cli._console import echo
from syncscope.errors import UserError


@click.command(short_help="The linter in an editor.")
def command() -> int:
    """Serve an editor over standard input and output: diagnostics, hover, and fixes as code actions.

    An editor starts this; docs/lint.md says how for some of them. It needs `pip install syncscope[lsp]`. Its
    exit code is 1 where the editor says `exit` without `shutdown` before.
    """
    if importlib.util.find_spec("pygls") is None:
        raise UserError("the editor server needs pygls", "pip install 'syncscope[lsp]'")
    from syncscope.linter.lsp import server

    if sys.stdin is not None and sys.stdin.isatty():
        echo("waiting for an editor to speak on standard input; docs/lint.md says how to set one up", err=True)
    serve = server()
    with os.fdopen(os.dup(1), "wb") as stdout:  # the server closes it when the editor says `exit`
        serve.start_io(stdout=stdout)
    return serve.code
