"""Where a recording and the source speak of the same line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from syncscope.model.finding import Finding, Hazard
from syncscope.model.source import Place


class Join:
    """Findings by place: paths are the same where the longest possible part of their ends agrees.

    A recording knows a file as the interpreter did (`/home/me/proj/train.py`), the linter as the user typed it
    (`proj/train.py`), and the machine may be another one.
    """

    def __init__(self, findings: Iterable[Finding], hazards: Sequence[Hazard]) -> None:
        self._findings = tuple(findings)
        self._seen_as = {hazard.name: hazard.seen_as for hazard in hazards}
        self._by_file: dict[str, list[Finding]] = {}
        for finding in self._findings:
            self._by_file.setdefault(PurePath(finding.place.path).name, []).append(finding)
        self._met: set[int] = set()

    def finding(self, op: str, place: Place | None, function: str = "", column: int = -1) -> Finding | None:
        """The finding at a place: on that line, or in that function where the recording knows no more."""
        if place is None:
            return None
        near = self._by_file.get(PurePath(place.path).name, [])
        if function:
            near = [
                f for f in near if f.function.rpartition(".")[2] == function and op in self._seen_as.get(f.rule, ())
            ]
        else:
            near = [f for f in near if f.place.line <= place.line <= max(f.end_line, f.place.line)]
        if not near:
            return None

        def fits(f: Finding) -> tuple[int, bool, int, int]:
            knows = op in self._seen_as.get(f.rule, ())
            return same_end(f.place.path, place.path), knows, -abs(f.place.line - place.line), -abs(f.column - column)

        best = max(near, key=fits)
        if not is_same_file(best.place.path, place.path):
            return None
        self._met.add(id(best))
        return best

    def rule(self, op: str, finding: Finding | None) -> str:
        """The rule that knows a read: that of its finding, else the hazard that shows itself by such an op."""
        if finding is not None:
            return finding.rule
        known = [(seen_as.index(op), name) for name, seen_as in self._seen_as.items() if op in seen_as]
        return min(known)[1] if known else ""  # the first names are most the rule's own

    @property
    def unseen(self) -> tuple[Finding, ...]:
        """The findings that `finding` has not given to anyone."""
        return tuple(f for f in self._findings if id(f) not in self._met)


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths may name one file: one is the end of the other, or more of both is alike than the name."""
    return same_end(one, other) >= min(2, len(PurePath(one).parts), len(PurePath(other).parts))


def same_end(one: str, other: str) -> int:
    """How many of the last parts of two paths are the same."""
    ends = zip(reversed(parts(one)), reversed(parts(other)), strict=False)
    count = 0
    for a, b in ends:
        if a != b:
            break
        count += 1
    return count


def parts(path: str) -> tuple[str, ...]:
    """The names of a path, whatever system it is of."""
    return tuple(p for p in path.replace("\\", "/").split("/") if p not in ("", "."))
