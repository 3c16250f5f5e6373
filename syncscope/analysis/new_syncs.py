"""How many syncs of a step are new, where lines may have moved and statements been cut in two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncscope.analysis.same_text import place_before
from syncscope.model.report import Line
from syncscope.model.source import Place

Pairs = Sequence[tuple[Line | None, Line | None]]


@dataclass(frozen=True, slots=True)
class NewSyncs:
    """The lines that have more syncs than before, by how many a step, the most first; and how many a step has more.

    Where the texts of lines are not known, a line that moved may look like one that is new: then `surely` is less than `count`.
    """

    lines: tuple[tuple[Line, float], ...] = ()
    count: float = 0.0
    surely: float = 0.0


def new_syncs(pairs: Pairs, known: Mapping[str, str], texts: Mapping[str, Mapping[Place, Place]]) -> NewSyncs:
    """What a step waits for more often, by lines that are the same in both. `known` and `texts` are as in `compare`.

    A line of the same text has what it has more. Among the others of one file and op what is gone goes against what came: one
    statement may have become two. What the device's fallbacks read is no sync of the user's.
    """
    firm: list[tuple[Line, float]] = []
    came: dict[tuple[str, str], list[tuple[Line, float]]] = {}
    went: dict[tuple[str, str], float] = {}
    for a, b in pairs:
        line = b or a
        if line is None or line.fallback:
            continue
        more = (b.count if b else 0.0) - (a.count if a else 0.0)
        if b is not None and _is_firm(a, b, texts):
            firm += [(b, more)] if more > 0 else []
            continue
        key = (
            known.get(b.place.path, b.place.path) if b and b.place else a.place.path if a and a.place else "",
            line.op,
        )
        if b is not None and more > 0:
            came.setdefault(key, []).append((b, more))
        else:
            went[key] = went.get(key, 0.0) - more
    told = {known[path] for path in texts if path in known}
    lines, count, surely = firm, sum(more for _, more in firm), 0.0
    surely += count
    for key, found in came.items():
        total = sum(more for _, more in found)
        left = max(0.0, total - went.get(key, 0.0))
        by_text = key[0] in told
        surely += left
        count += left if by_text else total
        lines = lines + found if left or not by_text else lines
    old = {id(b) for a, b in pairs if a is not None}
    return NewSyncs(tuple(sorted(lines, key=lambda of: (-of[1], id(of[0]) in old))), count, surely)


def _is_firm(a: Line | None, b: Line, texts: Mapping[str, Mapping[Place, Place]]) -> bool:
    """Whether both are surely one line: of the same text, or of the same module where no line is known."""
    if a is None or b.place is None:
        return a is not None
    here = b.place.path in texts and place_before(b.place, texts) == a.place
    return here and place_before(b.caller, texts) == a.caller
