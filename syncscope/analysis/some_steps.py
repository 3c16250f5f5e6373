"""Of a long recording some of its steps, which are replayed for all of them.

Steps of a loop are alike, and each further one makes the interval of a price narrower by less. So of a recording with more
than `MOST` launches and waits those steps are replayed that follow one another, in the shortest stretch that speaks for all:

```text
all        |-a-|-a-|-b-|-a-|-a-|-b-|-a-|-a-|-b-|-a-|-a-|-b-|
replayed                   |-a-|-a-|-b-|-a-|-a-|-b-|          as many of a and b, as long, and its lines wait as long
```

What is counted, and where a step goes, is of all. A loop whose steps differ too much for that is replayed whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.steps import alike
from syncscope.analysis.window import between
from syncscope.model.report import Step
from syncscope.model.trace import Trace

MOST = 20_000  # launches and waits of the host up to which all steps are replayed
FEWEST = 10  # steps that are counted
NARROW = 0.01  # of a step: as far the mean of the steps that are replayed may be off, in length and in the waits of each line
Numbers = NDArray[np.float64]


def replayed_steps(trace: Trace, event_graph: EventGraph, pinned: float | None = None) -> EventGraph:
    """The steps that are replayed, taken apart; where that is all of the recording, as it was given.

    `pinned` is as in `event_graph_of`.
    """
    chosen = _stretch(event_graph)
    if chosen is None:
        return event_graph
    some = event_graph_of(between(trace, chosen[0].start, chosen[-1].end), pinned, event_graph.by_work)
    some.recorder = event_graph.recorder
    return some


def replayed_of(all_steps: Sequence[Step], replayed: EventGraph) -> tuple[str, ...]:
    """What is to be said of it: nothing where all steps are replayed."""
    few = replayed.steps
    if len(few) == len(all_steps):
        return ()
    at = next(number for number, step in enumerate(all_steps) if step.end >= few[0].end)
    said = (
        f"savings, and what else a replay tells, are of {len(alike(few))} of {len(all_steps):,} steps ({at + 2} to "
        f"{at + len(few) - 1}): they are as long as all of them, and wait as long, to within {NARROW:.0%} of a step"
    )
    return (said,)


def _stretch(event_graph: EventGraph) -> Sequence[Step] | None:
    """The steps, with the one before and the one after those that are counted; None for all there are."""
    steps, items = event_graph.marked, len(event_graph.host.row)
    counted = alike(event_graph.steps)
    if items <= MOST or len(counted) < 2 * FEWEST:
        return None
    spent = _spent(event_graph)
    count = max(FEWEST, len(steps) * MOST // items)
    while count <= len(counted) // 2:
        for first in _speaking_for_all(spent[counted.start : counted.stop], count):
            chosen = range(counted.start + first - 1, counted.start + first + count + 1)
            if chosen.start >= 0 and chosen.stop <= len(steps):
                stretch = event_graph.steps[chosen.start : chosen.stop]
                if alike(stretch) == range(1, count + 1):
                    return steps[chosen.start : chosen.stop]
        count += max(1, count // 10)
    return None


def _speaking_for_all(spent: Numbers, count: int) -> Iterator[int]:
    """Where `count` steps begin whose means are those of all to within `NARROW` of a step, from the middle on outwards."""
    so_far = np.concatenate([np.zeros((1, spent.shape[1])), np.cumsum(spent, axis=0)])
    means = (so_far[count:] - so_far[:-count]) / count
    mean = spent.mean(axis=0)
    good = np.flatnonzero((abs(means - mean) <= NARROW * mean[0]).all(axis=1))
    middle = (len(means) - 1) / 2
    yield from good[np.argsort(abs(good - middle), kind="stable")].tolist()


def _spent(event_graph: EventGraph) -> Numbers:
    """A row a step, from the end of the one before it: its length, and how long each of the lines waited, ns."""
    ends = np.array(event_graph.ends)
    reads = event_graph.reads
    lines = list(dict.fromkeys((read.op, read.place, read.module, read.function) for read in reads))
    code = {line: number for number, line in enumerate(lines, 1)}
    found = np.zeros((len(ends) + 1, len(lines) + 1))
    found[1:-1, 0], found[0, 0] = np.diff(ends), ends[0]
    starts = np.array([read.start for read in reads], np.int64) - event_graph.host.origin
    for read, step in zip(reads, np.searchsorted(ends, starts, side="right").tolist(), strict=True):
        found[step, code[read.op, read.place, read.module, read.function]] += read.blocked
    return found[:-1]
