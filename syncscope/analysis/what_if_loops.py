"""What a step would take if the passes of a loop that waits in each of them were made at once.

```text
recorded   host  [a][b][ wait][a][b][ wait][a][b][ wait]    at once   host  [a][b]
           queue    [a][b]      [a][b]      [a][b]                    queue    [aaa][bbb]
```

One call over all images, instead of one for each: all passes but one go, on the host and with their launches, forward and
backward; what their kernels compute stays, in the kernels of the one that is left. That no pass needs the one before it is
known from the source: `Ground.loops` has the loops of which it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from syncscope.analysis.changes import Changes
from syncscope.analysis.growth import shortest
from syncscope.analysis.price import unpriced
from syncscope.analysis.steps import alike
from syncscope.analysis.what_if_ground import Ground, Truths
from syncscope.model.source import Place, shortly
from syncscope.model.what_if import Effort, WhatIf

PASSES = 3  # of a loop in a step, at least
ALIKE = 0.6  # of the lines between two waits, those that lie between most: else the loop was left in between
NETWORK = re.compile(r"gemm|conv|gemv|cudnn|cutlass|attention", re.IGNORECASE)  # kernels of layers
Stretch = tuple[int, int]  # items of the host, the last one exclusive


@dataclass(frozen=True, slots=True)
class LoopApart:
    """A loop whose passes are made at once: the items of the host that go, and the reads (by number) of all passes."""

    where: str
    passes: int
    gone: Truths
    reads: frozenset[int]

    def network(self, ground: Ground) -> bool:
        """Whether passes compute a network: then they are of batches, which nobody makes one."""
        trace, work = ground.trace, ground.event_graph.device_work
        layers = np.array([bool(NETWORK.search(name)) for name in trace.names], bool)
        return bool(layers[trace.name[work.row[self.gone[work.enqueued]]]].any())


def passes_at_once(ground: Ground) -> Iterator[WhatIf]:
    """A row for each loop whose passes need nothing of one another."""
    for one in joined(ground):
        yield _row(ground, one)


def joined(ground: Ground) -> list[LoopApart]:
    """The loops of a recording whose passes need nothing of one another, and that make several in a step."""
    of: dict[tuple[str, int], list[Place]] = defaultdict(list)
    for place, line in ground.loops.items():
        of[place.path, line].append(place)
    loops = []
    for (path, line), places in sorted(of.items()):
        waits = {(r.place.line, r.column, r.place) for r in ground.event_graph.reads if r.place in places}
        found = [one for _, column, place in sorted(waits) if (one := _passes(ground, place, column)) is not None]
        if found:
            stretches, passes = min(found, key=lambda one: one[1])  # an expression may wait several times in a pass
            loops.append(_joined(ground, f"{shortly(path)}:{line}", stretches, passes))
    return loops


def saved_at_once(ground: Ground, loops: Sequence[LoopApart], freed: Collection[int]) -> tuple[float, float]:
    """What a step is shorter, ns, with the passes of these loops at once, and without the reads in `freed`; and the most that
    it may be: then what the kernels of the other passes computed goes, too."""
    work = ground.event_graph.device_work
    gone = np.any([one.gone for one in loops], axis=0)
    gaps, cost = (times.copy() for times in ground.times)
    gaps[gone] = np.minimum(gaps[gone], ground.loading[gone])
    cost[gone & ~ground.event_graph.host.holds] = 0.0
    pieces = np.flatnonzero(gone[work.enqueued])
    floor = shortest(ground.trace, work.row)
    together, left_out, chained = work.duration.copy(), work.duration.copy(), np.zeros(len(work.duration), bool)
    together[pieces] = (together[pieces] - floor[pieces]).clip(0)
    left_out[pieces], chained[pieces] = 0.0, True
    reads = sorted(set(freed).union(*(one.reads for one in loops)))
    likely, most = (
        ground.saved(Changes(gaps=gaps, cost=cost, duration=duration, chained=chained), reads)
        for duration in (together, left_out)
    )
    return likely, most


def _passes(ground: Ground, place: Place, column: int) -> tuple[list[Stretch], int] | None:
    """All passes but the first of each step, from wait to wait, and how many a counted step makes; None where they are few, as
    of a loop that runs once an epoch."""
    of: dict[int, list[int]] = defaultdict(list)
    for read in ground.event_graph.reads:
        if (read.place, read.column) == (place, column) and read.step >= 0 and read.calls:
            of[read.step].append(int(ground.lines.item_of(np.array(read.calls[:1], np.intp))[0]))
    steps = ground.event_graph.steps
    counted = [steps[n].index for n in alike(steps) or range(len(steps))]
    passes = int(median(len(of.get(step, ())) for step in counted)) if counted else 0
    if passes < PASSES:
        return None
    stretches = [(since + 1, until + 1) for items in of.values() for since, until in pairwise(items)]
    kinds = [set(ground.lines.item[since:until].tolist()) for since, until in stretches]
    often = np.bincount([code for lines in kinds for code in lines], minlength=1)
    usual = set(np.flatnonzero(2 * often >= len(stretches)).tolist())
    inside = [
        stretch
        for stretch, lines in zip(stretches, kinds, strict=True)
        if len(lines & usual) >= ALIKE * len(lines) and not ground.loading[slice(*stretch)].any()
    ]
    return (inside, passes) if 2 * len(inside) >= len(stretches) else None


def _joined(ground: Ground, where: str, stretches: list[Stretch], passes: int) -> LoopApart:
    work, lines = ground.event_graph.device_work, ground.lines
    gone = np.zeros(len(ground.event_graph.host.row), bool)
    for since, until in stretches:
        gone[since:until] = True
    around = gone.copy()  # with the pass that is left
    for since, until in stretches:
        around[max(0, since - (until - since)) : since] = True
    codes = np.unique(lines.item[gone])
    for code in codes[codes > 0].tolist():  # of as many backward launches as there are passes one is left
        back = work.enqueued[np.flatnonzero(lines.backward & (lines.whose == code))]
        gone[back[np.arange(len(back)) % passes != 0]] = True
    return LoopApart(where, passes, gone, frozenset(_reads_within(ground, around)))


def _row(ground: Ground, one: LoopApart) -> WhatIf:
    work, gone = ground.event_graph.device_work, one.gone
    likely, most = saved_at_once(ground, [one], ())
    spent = np.where(ground.counted(gone), sum(ground.times), 0.0)
    pieces = np.flatnonzero(gone[work.enqueued])
    took = float(work.duration[pieces][ground.counted(gone)[work.enqueued[pieces]]].sum()) / ground.window.steps
    return ground.row(
        f"the {one.passes} passes of the loop at {one.where} are made at once",
        likely,
        ground.saved(freed=sorted(one.reads)),
        most,
        most,
        lines=ground.dearest(spent),
        advice="one call over all of them: tensors with a dimension more, and masks as weights; no pass needs another",
        host=float(spent.sum()) / ground.window.steps,
        device=took,
        effort=Effort.STEP,
        word="loop",
    )


def _reads_within(ground: Ground, items: Truths) -> list[int]:
    """The reads that wait there, those without a price aside."""
    left = unpriced(ground.graph)
    found = []
    for number, read in enumerate(ground.event_graph.reads):
        if number not in left and read.calls:
            at = ground.lines.item_of(np.array(read.calls[:1], np.intp))
            if items[at].any():
                found.append(number)
    return found
