"""What became of the device's work between two recordings: which kernels got slower or more numerous, and whose they are.

Work is told apart by its name and by the line that launched it, as far as both recordings know lines; what a backward pass
launches is the line's whose gradient it is. Lines that moved are found as those that wait are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from syncscope.analysis.by_line import NumberedLines
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.step_uses import counted_part
from syncscope.analysis.steps import alike
from syncscope.model.source import Place
from syncscope.model.trace import Trace

BRIEF, PART = 1e4, 0.01  # ns, and of a step: what a step has so much more or less of is not worth a word
SAME = 0.1  # counts and times that differ by less than this part are the same

Sums = dict[tuple[str, Place | None], tuple[float, float]]
"""How often a step has work of a name, of a line, and how long it takes, ns."""


@dataclass(frozen=True, slots=True)
class WorkChange:
    """Kernels or copies of one name that one line launches, in the first recording and in the second: the line, how many a step
    has, and how long these take, ns of a step. None and 0 where a recording has none."""

    name: str
    places: tuple[Place | None, Place | None]
    counts: tuple[float, float]
    times: tuple[float, float]

    @property
    def more(self) -> float:
        """By how much longer it takes in the second, ns of a step."""
        return self.times[1] - self.times[0]

    @property
    def word(self) -> str:
        """What became of it: it may be new or gone, more or fewer of it; else it takes longer or less each time."""
        if 0.0 in self.counts:
            return "new" if self.counts[1] else "gone"
        if not near(*self.counts):
            return "more" if self.counts[1] > self.counts[0] else "fewer"
        return "slower" if self.more > 0 else "faster"


def near(a: float, b: float) -> bool:
    """Whether two counts or times are as good as the same."""
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def work_changes(
    before: tuple[Trace, EventGraph], after: tuple[Trace, EventGraph], place_in_first: Callable[[Place], Place | None]
) -> tuple[WorkChange, ...]:
    """What takes longer or less in the second, the largest difference first; `place_in_first` is of a line of the second."""
    one, other = _sums(*before), _sums(*after)
    known = [{name for name, place in sums if place is not None} for sums in (one, other)]
    unlike = (known[0] ^ known[1]) & {name for name, _ in one} & {name for name, _ in other}
    one, other = _without_lines(one, unlike), _without_lines(other, unlike)
    step = max(_step(*before), _step(*after))
    found = [
        WorkChange(name, places, (a[0], b[0]), (a[1], b[1]))
        for name, places, a, b in _pairs(one, other, place_in_first)
    ]
    least = max(BRIEF, PART * step)
    changed = [each for each in found if abs(each.more) > least and not (near(*each.times) and near(*each.counts))]
    return tuple(sorted(changed, key=lambda each: -abs(each.more)))


def _pairs(
    one: Sums, other: Sums, place_in_first: Callable[[Place], Place | None]
) -> list[tuple[str, tuple[Place | None, Place | None], tuple[float, float], tuple[float, float]]]:
    """The work that is the same: of the same line, then what is left of a name in the order of its lines."""
    left, found, rest = dict(one), [], []
    for (name, place), sums in other.items():
        key = name, None if place is None else place_in_first(place)
        if key in left:
            found.append((name, (key[1], place), left.pop(key), sums))
        else:
            rest.append((name, place, sums))
    waiting: dict[str, list[Place | None]] = {}
    for name, place in sorted(left, key=lambda key: (key[0], str(key[1]))):
        waiting.setdefault(name, []).append(place)
    for name, place, sums in sorted(rest, key=lambda each: (each[0], str(each[1]))):
        if waiting.get(name):
            at = waiting[name].pop(0)
            found.append((name, (at, place), left.pop((name, at)), sums))
        else:
            found.append((name, (None, place), (0.0, 0.0), sums))
    return [*found, *((name, (place, None), sums, (0.0, 0.0)) for (name, place), sums in left.items())]


def _sums(trace: Trace, event_graph: EventGraph) -> Sums:
    """The device's work of the counted steps: what the host launches in them, for of that each step has the whole, however far
    the device is behind."""
    _, _, steps = counted_part(trace, event_graph)
    rows, call = event_graph.launched.row, event_graph.launched.call
    lines = NumberedLines(trace, event_graph)
    first, last = _asked(trace, event_graph)
    asked = np.where(call >= 0, trace.start[call], trace.start[rows])
    inside = np.flatnonzero((asked >= first) & (asked < last))
    many = max(1, len(trace.names))
    codes, at = np.unique(lines.whose[inside] * many + trace.name[rows[inside]], return_inverse=True)
    counts = np.bincount(at, minlength=len(codes)) / len(steps)
    times = np.bincount(at, trace.duration[rows[inside]], len(codes)) / len(steps)
    found: Sums = {}
    for code, count, time in zip(codes.tolist(), counts.tolist(), times.tolist(), strict=True):
        place, caller = lines.pairs[code // many]
        number = caller if caller >= 0 else place
        _add(found, (trace.names[code % many], trace.places[number] if number >= 0 else None), count, time)
    return found


def _asked(trace: Trace, event_graph: EventGraph) -> tuple[int, int]:
    """When the host asks for the work of the counted steps, first and last ns; without steps, the recording."""
    steps, marked = event_graph.steps, event_graph.marked
    if not steps:
        return counted_part(trace, event_graph)[:2]
    counted = alike(steps) or range(len(steps))
    return marked[counted.start - 1].end if counted.start else marked[0].start, marked[counted.stop - 1].end


def _without_lines(sums: Sums, names: set[str]) -> Sums:
    """The same, all together of each of these names, of which only one recording knows lines."""
    found: Sums = {}
    for (name, place), (count, time) in sums.items():
        _add(found, (name, None if name in names else place), count, time)
    return found


def _add(sums: Sums, key: tuple[str, Place | None], count: float, time: float) -> None:
    so_far = sums.get(key, (0.0, 0.0))
    sums[key] = so_far[0] + count, so_far[1] + time


def _step(trace: Trace, event_graph: EventGraph) -> float:
    first, last, steps = counted_part(trace, event_graph)
    return (last - first) / len(steps)


def place_in_first(
    known: Mapping[str, str], texts: Mapping[str, Mapping[Place, Place]]
) -> Callable[[Place], Place | None]:
    """Where a line of the second recording is in the first: by its text where that is known, else at the same number."""

    def found(place: Place) -> Place | None:
        if place.path in texts:
            return texts[place.path].get(place)
        return Place(known.get(place.path, place.path), place.line)

    return found
