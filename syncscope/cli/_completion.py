"""What the Tab key offers where a name is wanted: rules and formats, by the files in their folders."""

from __future__ import annotations

import click


def rules(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The names of the rules that begin so; of several with commas between, the last."""
    from syncscope import discover
    from syncscope import rules as folder

    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{name}" for name in discover.names(folder) if name.startswith(last)]


def formats(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The names of the formats for findings that begin so."""
    from syncscope.cli import _formats

    return [name for name in ("text", *_formats.able({"findings"})) if name.startswith(begun)]
