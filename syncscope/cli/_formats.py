"""Which exporter writes what a command has: by its name, else by the suffix of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

import click

from syncscope import discover, exporters, files
from syncscope.cli._console import echo
from syncscope.errors import UserError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
ALIASES = {"text": "terminal"}
SHORTER = {".xml": "junit"}  # endings that only one format has, in short


def chosen(
    name: str | None, output: str | None, has: set[str], own: Sequence[str] = ()
) -> tuple[ModuleType, str] | None:
    """The exporter and its name; None where neither says which.

    `has` is what there is to show, in the words of an exporter's `TAKES`, `own` is what the command has beside these.

    Raises:
        UserError: no exporter is called so, or it shows something else.
    """
    if name is None:
        fitting = [(len(module.SUFFIX), known) for known, module in able(has).items() if ends(output, module.SUFFIX)]
        in_short = next((known for suffix, known in SHORTER.items() if ends(output, suffix)), None)
        found = max(fitting)[1] if fitting else in_short
        return named(found, has) if found is not None else None
    return named(ALIASES.get(name, name), has, own)


def able(has: set[str]) -> dict[str, ModuleType]:
    """The exporters that take what there is."""
    return {name: module for name, module in discover.discover(exporters).items() if module.TAKES & has}


def named(name: str, has: set[str], own: Sequence[str] = ()) -> tuple[ModuleType, str]:
    """The exporter of that name, and no other is imported.

    Raises:
        UserError: there is none, or it shows something else.
    """
    if name not in discover.names(exporters):
        raise UserError(f"no format is called {name!r}", discover.did_you_mean(name, [*own, *able(has)]))
    module = discover.load(exporters, name)
    if not module.TAKES & has:
        wanted, there = (" and ".join(sorted(what)) for what in (module.TAKES, has))
        raise UserError(
            f"the format {name!r} shows a {wanted}, and here are {there}", f"choose from: {', '.join(able(has))}"
        )
    return module, name


def ends(output: str | None, suffix: str) -> bool:
    """Whether a name ends so; a format that is a folder has no suffix."""
    return bool(suffix) and (output or "").endswith(suffix)


ENDINGS = {
    "gitlab": (".gl-code-quality.json", "limits"),
    "sarif": (".sarif", "limits"),
    "json": (".json", "for programs"),
    "html": (".html", "a page"),
    "markdown": (".md", "a table"),
    "junit": (".junit.xml", "limits"),
}
"""What a file ends with that is in a format of a command which compares or joins recordings, and what that is."""


def options(formats: Sequence[str], output: str) -> Callable[[Decorated], Decorated]:
    """`--format`, one of these, and `-o` with its help, for `plain` to choose by."""

    def decorated(command: Decorated) -> Decorated:
        command = click.option("-o", "--output", metavar="OUT", help=output)(command)
        told = "terminal, if nothing else is said."
        return click.option("--format", "format_", type=click.Choice(formats), help=told)(command)

    return decorated


def plain(name: str | None, output: str | None, formats: Sequence[str]) -> str:
    """Which of these is wanted: by its name, else by the ending of the output, else the terminal.

    Raises:
        UserError: the output does not say which, or the format cannot go there.
    """
    if name is None and output is not None:
        known = {one: ENDINGS[one] for one in formats if one in ENDINGS}
        name = next((one for one, (suffix, _) in known.items() if ends(output, suffix)), None)
        name = name or next((one for suffix, one in SHORTER.items() if one in known and ends(output, suffix)), None)
        if name is None:
            said = f"{output} does not say which format is wanted, of those that there are here"
            endings = ", or ".join(f"{suffix}, {what}" for suffix, what in known.values())
            raise UserError(said, f"end it with {endings}; or add --format")
    if name == "html" and output is None:
        raise UserError("--format html needs a place to write to", "add -o and the name of a file")
    if name == "terminal" and output is not None:
        raise UserError(
            f"--format terminal is printed, and not written to {output}", "leave out one of both, or use > FILE"
        )
    return name or "terminal"


def written(text: str, output: str | None, commands: bool = False) -> None:
    """Print it, or write it there, and say so; `commands` are for a CI runner."""
    if output is None:
        echo(text, nl=bool(text), commands=commands)
        return
    files.write(output, f"{text}\n".encode())
    echo(f"wrote {output}", err=True)
