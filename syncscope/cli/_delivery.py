"""Where reports go: to the screen, into a file each, or all into one, and a table of many."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscope import files
from syncscope.cli import _jobs, _merged, _outputs, _overview, _targets
from syncscope.cli._console import console, echo
from syncscope.cli._merged import unread
from syncscope.errors import UserError
from syncscope.model.coverage import Coverage
from syncscope.model.report import Report
from syncscope.model.words import visible

if TYPE_CHECKING:
    from types import ModuleType


class Delivery:
    """Of the reports of these recordings, one after another, in the format of an exporter called so. `listed`: a list is wanted
    in JSON even if there is one recording only; `whole`: each is wanted whole where it is printed for people.

    Raises:
        UserError: they cannot go there.
    """

    def __init__(
        self, exporter: ModuleType, name: str, output: str | None, paths: Sequence[str], listed: bool, whole: bool
    ) -> None:
        several, of_findings = len(paths) > 1, {"findings"} == exporter.TAKES
        joins = of_findings or name in ("terminal", "json") or getattr(exporter, "JOINS", False)
        self._exporter, self._name, self._output, self._whole = exporter, name, output, whole
        self._writes = hasattr(exporter, "write")  # a folder of its own
        self._each = self._one = False  # a file for each, in a folder; all in one file
        if output is None and ((several and not joins) or not hasattr(exporter, "export")):
            raise UserError(f"--format {name} needs a place to write to", "add -o and the name of a folder")
        if output is not None and not self._writes:
            called = Path(output)
            self._each = output.endswith("/") or called.is_dir() or (several and not called.suffix)
            self._one = several and not self._each
            if self._one and not joins:
                folder = f"--format {name} -o {called.with_suffix('')}/"
                said = f"{len(paths)} recordings do not go into one file, {output}"
                raise UserError(said, f"name a folder, `{folder}`, or one recording, as {visible(paths[-1])}")
        self._merged = _merged.Merged() if several and of_findings and not self._each else None
        self._opened: Path | None = None  # the folder that a viewer is given, once there is something in it
        self._listed = name == "json" and (self._one or (output is None and (several or listed)))
        self._names = _targets.names(paths, _jobs.numbers(paths)) if self._each else {}
        if output is not None and not self._writes:  # what writes a folder of its own takes names that are free
            _outputs.spare([self._place(path) for path in paths], paths)
            if self.pages and several:
                from syncscope.cli import _pages

                self._names = {path: _pages.beside_index(name) for path, name in self._names.items()}
        for_people = name == "terminal" if output is None else not self._one and "trace" in exporter.TAKES
        self._rows: list[_overview.AtAGlance] | None = [] if several and for_people else None
        self._in_short = output is None and for_people and not whole and len(paths) > _overview.WHOLE
        self._without_page = set[str]()
        self.jobs: dict[str, Path] = {}  # pages of the jobs that these are of, by what they are of
        self._objects: list[Any] = []
        self._texts: list[str] = []

    def take(self, report: Report, path: str) -> None:
        """The report of one recording."""
        if self._rows is not None:
            self._rows.append(_overview.row(report, path))
        if self._merged is not None:
            self._merged.take(report)
        elif self._listed:
            self._objects.append(self._exporter.as_object(report))
        elif self._one:
            text = self._exporter.export(report)
            self._texts.append(text if text.endswith("\n") else f"{text}\n")
        elif self._output is not None:
            self._keep(report, self._place(path))
        elif not self._in_short:
            self._show(report)

    def unread(self, path: str, error: UserError) -> None:
        """A recording that cannot be read: it stands among the others, with the reason."""
        if self._merged is not None:
            self._merged.take(unread(path, error, getattr(self._exporter, "LIMITS", False)))
        report = Report(name=path, coverage=Coverage(refusal=error.message, hint=error.hint, whole=False))
        if self._rows is not None:
            self._rows.append(_overview.row(report, path))
            self._without_page.add(path)
        if self._listed:
            self._objects.append(self._exporter.as_object(report))

    def end(self) -> None:
        """There are no more."""
        if self._merged is not None and self._output is None:
            self._show(self._merged.report)
        elif self._merged is not None:
            self._texts.append(self._exporter.export(self._merged.report))
        text = json.dumps(self._objects, indent=2) if self._listed else "".join(self._texts)
        if self._one and self._output is not None and (self._objects or self._texts):
            _written(text, Path(self._output))
        elif self._listed and self._output is None:
            echo(text)
        if self._opened is not None:
            echo(self._exporter.how_to_open(self._opened), err=True)
        if self.pages and self._rows and (len(self._rows) > 1 or self.jobs):
            from syncscope.cli import _pages

            pages = [None if row.path in self._without_page else self._place(row.path) for row in self._rows]
            _pages.index(self._rows, pages, self.jobs, Path(str(self._output)))
        if self._rows and (self._in_short or len(self._rows) > 1):
            _overview.show(self._rows, self._in_short)

    @property
    def waits(self) -> bool:
        """Whether nothing is printed on standard output before the end."""
        return self._output is not None or self._in_short or self._listed or self._merged is not None

    @property
    def pages(self) -> bool:
        """Whether a page of each is written into a folder."""
        return self._each and self._name == "html"

    @property
    def names(self) -> set[str]:
        """What the files are called that are written into a folder."""
        return {name + self._exporter.SUFFIX for name in self._names.values()}

    def _place(self, path: str) -> Path:
        """Where the report of a recording is written."""
        assert self._output is not None
        name = self._names.get(path)
        return Path(self._output, name + self._exporter.SUFFIX) if name else Path(self._output)

    def _show(self, report: Report) -> None:
        """Print it: for people as wide as the terminal is, and in short unless the whole is asked for; for others as the file
        would be."""
        if self._name != "terminal":
            text = self._exporter.export(report)
            ends = text.endswith("\n" if isinstance(text, str) else b"\n")
            echo(text, nl=bool(text) and not ends, commands=getattr(self._exporter, "COMMANDS", False))
            return
        out = console()
        out.print(self._exporter.render(report, out.width, self._whole))

    def _keep(self, report: Report, out: Path) -> None:
        """Write it, so that there is the old file or the whole new one, and say what was written."""
        if not self._writes:
            _written(self._exporter.export(report), out, in_new=self._each)
            return
        try:
            written = self._exporter.write(report, out)
        except OSError as error:
            said = f"{out} cannot be written: {error.strerror or error}"
            raise UserError(said, "choose another place with -o") from None
        echo("".join(f"wrote {file}\n" for file in written), nl=False, err=True)
        self._opened = out


class Undelivered:
    """In place of a delivery, for reports that are held to limits and shown to nobody."""

    waits = True

    def take(self, report: Report, path: str) -> None:
        """The report of one recording."""

    def unread(self, path: str, error: UserError) -> None:
        """A recording that cannot be read."""

    def end(self) -> None:
        """There are no more."""


def _written(text: str | bytes, out: Path, *, in_new: bool = False) -> None:
    """Write a file; a folder is made for it where one was asked for (`in_new`), for else its name may be misspelt."""
    if not out.parent.exists() and not (in_new and out.parent.parent.is_dir()):
        raise UserError(f"there is no folder {os.fspath(out.parent)}", "make it, or choose another place with -o")
    files.write(out, text.encode() if isinstance(text, str) else text)
    echo(f"wrote {out}", err=True)
