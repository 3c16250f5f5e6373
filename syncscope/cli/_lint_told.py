"""What a run of the linter prints or writes, in which form, and the exit code that says how it went."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from syncscope import files
from syncscope.cli._console import columns, echo, harmless, painted, paints
from syncscope.cli._lint_conflicts import TEXT
from syncscope.model.words import visible

if TYPE_CHECKING:
    from types import ModuleType

    from syncscope.linter.session import Linted

MANY = 20  # findings: of more the first are shown with their code, unless a format is asked for


def exporter(said: dict[str, Any]) -> ModuleType | None:
    """What writes the findings; None is text, as a terminal shows it.

    Raises:
        UserError: no format is called so, or it is none for findings.
    """
    if said["diff"] or said["statistics"] or (said["form"] in TEXT and (said["form"] or not said["output"])):
        return None
    from syncscope.cli import _formats

    found = _formats.chosen(said["form"], said["output"], {"findings"}, own=("text",))
    suffix = os.path.splitext(said["output"] or "")[1]
    if found is None and suffix not in ("", ".txt", ".log"):
        known = ", ".join(sorted(filter(None, (module.SUFFIX for module in _formats.able({"findings"}).values()))))
        echo(
            f"note: {visible(said['output'])} is written as text: no format has the suffix {suffix}, but {known}",
            err=True,
        )
    return found and found[0]


def finish(linted: Linted, said: dict[str, Any], output: Output) -> int:
    """Print what was asked for; the exit code."""
    width = None if output.path else columns(sys.stdout)
    if said["diff"]:
        from syncscope.cli import _diffs

        diffs = _diffs.patch(linted, output.color) if said["fix"] else _diffs.each(linted, output.color, width)
        output.write(diffs, exact=True)
    elif said["statistics"]:
        from syncscope.cli._statistics import statistics

        output.write(statistics(linted))
    elif said["exporter"] is None:
        from syncscope.exporters import _long_list, _source_frame

        shown, provenance = list(linted.shown), said["explain_finding"]
        also = _long_list.also([] if said["quiet"] else [*linted.shown_also], color=output.color)
        if len(shown) > MANY and said["form"] is None and not provenance and not output.path:
            output.write(_long_list.text(shown, linted.sources, color=output.color, width=width) + also)
        else:
            frames = _source_frame.text(shown, linted.sources, color=output.color, provenance=provenance, width=width)
            output.write(frames + also)
    else:
        export = getattr(said["exporter"], "export_findings", said["exporter"].export)
        output.write(export(linted.report(quiet=said["quiet"])), commands=getattr(said["exporter"], "COMMANDS", False))
    if said["exporter"] is None and not said["quiet"]:
        from syncscope.exporters._over_lines import over_lines
        from syncscope.linter.summary import summary

        for line in summary(linted, fixed=said["fix"], unsafe=said["unsafe_fixes"], dry=said["diff"]):
            echo(over_lines(line, columns(sys.stderr), "  "), err=True)
    worst = complain(linted)
    return worst or int(bool(linted.presented) and not said["exit_zero"])


def complain(linted: Linted) -> int:
    """Say what was not trusted, and what could not be read or written; 2 if there was anything of that."""
    for line in linted.notices:
        echo(f"{painted('note', err=True, fg='yellow')}: {visible(line)}", err=True)
    for problem in linted.problems:
        echo(f"{painted('error', err=True, fg='red', bold=True)}: {visible(problem)}", err=True)
    return 2 if linted.problems else 0


class Output:
    """Where the findings go: the terminal or a file."""

    def __init__(self, path: str | None = None, err: bool = False, color: str = "auto") -> None:
        self.path = path
        self.err = err
        asked = paints(sys.stderr if err else sys.stdout) if color == "auto" else color == "always"
        self.color = not path and asked

    def write(self, text: str, *, commands: bool = False, exact: bool = False) -> None:
        """Print it, or write the file atomically. `commands` are for a CI runner; a file that is `exact` may be a patch."""
        text = text.encode("utf-8", "backslashreplace").decode()  # names of files may be no text
        if self.path:
            files.write(self.path, (text if exact else harmless(text, commands=commands)).encode())
        else:
            echo(text, nl=False, err=self.err, commands=commands, color=self.color)
