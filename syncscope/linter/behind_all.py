"""The fixes of what waits in a step that only `--all` shows: of waits told in a line, and those to be made by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from syncscope.linter import engine
from syncscope.linter.known import Found
from syncscope.linter.run import Files
from syncscope.model.finding import Finding, Safety


def behind_all(files: Files, found: Iterable[Found], also: Iterable[Found]) -> Counter[Safety]:
    """How many fixes of each tier `--all` would show beside these; only files that may have one are linted again."""
    found, also = [*found], [*also]
    shown = {_at(finding) for _, finding in found if finding.fix is not None}
    sources = {source.path: source for source, _ in [*also, *(each for each in found if each[1].advice is not None)]}
    counted: Counter[Safety] = Counter()
    for path, source in sources.items():
        every = engine.check_source(source, replace(files.config(path), all=True)).findings
        fixes = {f.fix for f in every if f.fix is not None and f.hot and _at(f) not in shown}
        counted.update(fix.tier for fix in fixes)
    return counted


def _at(finding: Finding) -> tuple[str, str, int, int]:
    return finding.place.path, finding.rule, finding.place.line, finding.column
