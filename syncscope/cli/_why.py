"""`syncscope lint --explain-finding FILE:LINE`: what is known of a line, and why it is shown or hidden."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from syncscope.cli._console import columns, echo
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.linter.config import Config
    from syncscope.linter.run import Files
    from syncscope.linter.session import Linted
    from syncscope.model.finding import Finding

AT_LINE = re.compile(r"(?P<path>.+\.\w+):(?P<line>[1-9][0-9]{0,8})(?::[0-9]+)?")
WHOLE = {"select": ("ALL",), "min_confidence": "low", "all": True, "baseline": "", "per_file_ignores": ()}
Known = Mapping[tuple[str, int, int], "Finding"]


def places_in(paths: tuple[str, ...]) -> list[tuple[str, int]]:
    """The files and the lines that are asked for, of what is named; a file may be called so, and is no line."""
    found = [AT_LINE.fullmatch(path) for path in paths if not os.path.exists(path)]
    return [(each["path"], int(each["line"])) for each in found if each is not None]


def why(path: str, line: int, files: Files, said: dict[str, Any]) -> Linted:
    """Say of each wait at a line that is known whether it is shown as things stand, and why; `files` is this one alone. What
    was found in it."""
    from syncscope.exporters import _source_frame
    from syncscope.exporters._over_lines import over_lines
    from syncscope.linter.config import Configs
    from syncscope.linter.gathering import gather
    from syncscope.linter.run import Files

    shown = gather(files)
    configs = Configs(files.configs.named, files.configs.isolated)
    every = gather(Files((path,), {"rules": said["rules"] or None, "backend": said["backend"], **WHOLE}, configs))
    width = columns(sys.stdout)
    told = _Told(shown, files.config(path))
    silenced = [found for one in every.done for found in one.checked.silenced]
    found = [each for each in (*every.told, *silenced) if each.place.line <= line <= each.end_line]
    for one in found:
        echo(_source_frame.text([one], every.sources, provenance=True, width=width).rstrip())
        echo(over_lines(f"    = {told.of(one)}", width, "      ") + "\n")
    if not found:
        lines = sorted({each.place.line for each in (*every.told, *silenced)}, key=lambda n: abs(n - line))[:3]
        near = f"; the nearest that may are in line {', '.join(map(str, sorted(lines)))}" if lines else ""
        echo(f"{visible(path)}:{line}: nothing in it is known to wait for a device{near}")
    return shown


class _Told:
    """What became of each finding of a file, as it is linted."""

    def __init__(self, linted: Linted, config: Config) -> None:
        self._config = config
        self._shown = _by_place(finding for _, finding in linted.presented)
        self._short = _by_place(linted.shown_also)
        self._silent = _by_place(found for one in linted.done for found in one.checked.silenced)

    def of(self, found: Finding) -> str:
        """Whether it is shown, and why, in a sentence."""
        from syncscope.linter.config import LEAST, names_one
        from syncscope.linter.rulesets import family_slug

        config, key = self._config, (found.rule, found.place.line, found.column)
        if key in self._shown:
            return f"shown: {self._hot(self._shown[key])}"
        if key in self._short:
            return f"told in a line, and fails nothing: {_words(self._short[key])}; --all tells it whole"
        if key in self._silent:
            return "hidden: a comment lets it stand"
        off = config.ignored_in(found.place.path)

        def families(name: str) -> str:
            return family_slug(name, config.rules)

        if not config.wants(found.rule, families) or names_one(off, found.rule, families):
            return f"hidden: {found.rule} is off here (`select`, `ignore`, `per-file-ignores`)"
        if found.confidence < LEAST[config.min_confidence]:
            sure = "nothing says that it is a tensor of a device" if not found.why else "it may be a tensor of a device"
            return f"hidden: {sure}, so it is less sure than {config.min_confidence}; --min-confidence low shows it"
        if not found.hot and not config.all:
            return f"hidden: it is in no step ({found.heat.words}); --all shows it"
        if config.baseline:
            return f"hidden: {visible(config.baseline)} knows it"
        return "hidden: it goes along with another finding of its statement"

    def _hot(self, found: Finding) -> str:
        words = _words(found)
        return (
            f"it runs in every step ({words})"
            if found.hot and words
            else "it runs in every step"
            if found.hot
            else words
        )


def _words(found: Finding) -> str:
    """Why it is hot or cold; of what a step calls, in which function; of what may run in every step, a line that calls it."""
    from syncscope.heat.called_elsewhere import called_elsewhere
    from syncscope.heat.steps import Steps
    from syncscope.model.heat import Reason

    said = found.heat.of if found.heat.of is not None else found.heat
    by = Steps().caller(found.place.path, said.about[0]) if said.reason is Reason.CALLED else ""
    if said.reason is Reason.MAYBE and not said.line:
        owner = found.function.rpartition(".")[0].rpartition(".")[2]
        at = called_elsewhere(found.place.path, said.about[0], owner)
        if at is None:
            more = ": no line that calls it is known, nor anything by which it seldom runs"
        else:
            called = "it" if at.sure else "one of that name"
            more = f": {visible(os.path.relpath(at.path))}:{at.line} calls {called}"
    else:
        more = f", in `{by}`" if by else ""
    return found.heat.told(more)


def _by_place(findings: Iterator[Finding] | tuple[Finding, ...]) -> Known:
    return {(each.rule, each.place.line, each.column): each for each in findings}
