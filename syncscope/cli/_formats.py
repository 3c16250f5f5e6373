"""Which exporter writes what a command has: by its name, else by the suffix of the output."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from syncscope import discover, exporters, files
from syncscope.cli._console import echo
from syncscope.errors import UserError

ALIASES = {"text": "terminal"}


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
        return named(max(fitting)[1], has) if fitting else None
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


PLAIN = ["terminal", "json", "html"]  # formats of a command that compares or joins recordings


def plain(name: str | None, output: str | None) -> str:
    """Which of `PLAIN` is wanted: by its name, else by the ending of the output, else the terminal.

    Raises:
        UserError: the output does not say which, or the format cannot go there.
    """
    if name is None and output is not None:
        name = next((known for known in ("json", "html") if ends(output, f".{known}")), None)
        if name is None:
            said = f"{output} does not say which format is wanted, of those that there are here"
            raise UserError(said, "end it with .html, a page, or .json, for programs; or add --format")
    if name == "html" and output is None:
        raise UserError("--format html needs a place to write to", "add -o and the name of a file")
    if name == "terminal" and output is not None:
        raise UserError(
            f"--format terminal is printed, and not written to {output}", "leave out one of both, or use > FILE"
        )
    return name or "terminal"


def written(text: str, output: str | None) -> None:
    """Print it, or write it there, and say so."""
    if output is None:
        echo(text)
        return
    files.write(output, f"{text}\n".encode())
    echo(f"wrote {output}", err=True)
