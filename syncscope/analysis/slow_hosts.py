"""Whether the host of a rank is slower in all that it does: by the operators that all ranks run equally often.

```text
                  aten::mm  13    aten::empty  34    aten::sum  7
middle rank         250 us          138 us             95 us
rank 4              277 us          188 us            111 us        1.2 times as long, whichever it is: the processor
rank 7              237 us          137 us             92 us
```

The time of an operator itself counts: what it calls, and launches and waits, does not. A thread of its own runs the backward
pass, on another core, so that is told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from syncscope.analysis.rank import Rank

FEWEST_RANKS, FEWEST_OPERATORS = 3, 8  # of fewer no middle is known, or no rule
SLOWER = 0.05  # than the middle rank, from which it is told
SPREAD = 3  # times as far from the middle as half of the ranks are


@dataclass(frozen=True, slots=True)
class Pace:
    """How many times as long a rank's host takes for the same `operators` of the `backward` pass, or of all else, as the middle
    rank's: half of their time is in those that are slower than that. `own` and `others` are its time in them and the middle
    one's, ns of the whole recording."""

    number: int
    backward: bool
    ratio: float
    operators: int
    own: float
    others: float

    @property
    def what(self) -> str:
        """Which operators these are."""
        where = "of" if self.backward else "outside of"
        return f"{self.operators} operators {where} the backward pass that all ranks run alike"


def slow_hosts(ranks: Sequence[Rank]) -> tuple[Pace, ...]:
    """Those that take longer for the same than the others do among themselves."""
    found = []
    for backward in (False, True):
        paces = _paces(ranks, backward)
        usual = median([abs(pace.ratio - 1) for pace in paces] or [0.0])
        found += [pace for pace in paces if pace.ratio - 1 > max(SLOWER, SPREAD * usual)]
    return tuple(found)


def _paces(ranks: Sequence[Rank], backward: bool) -> list[Pace]:
    """Of each rank; none where too little is alike."""
    known = [{each.name: each for each in rank.host if each.backward is backward} for rank in ranks]
    if len(ranks) < FEWEST_RANKS:
        return []
    alike = [
        name
        for name, one in known[0].items()
        if all(name in of and of[name].runs == one.runs and of[name].own > 0 for of in known)
    ]
    if len(alike) < FEWEST_OPERATORS:
        return []
    usual = {name: median(of[name].own for of in known) for name in alike}
    return [
        Pace(
            rank.number,
            backward,
            _middle([(of[name].own / usual[name], usual[name]) for name in alike]),
            len(alike),
            sum(of[name].own for name in alike),
            sum(usual.values()),
        )
        for rank, of in zip(ranks, known, strict=True)
    ]


def _middle(weighed: list[tuple[float, float]]) -> float:
    """The value at half of the weight: no single one carries it."""
    values, weights = np.array(sorted(weighed)).T
    upto = np.cumsum(weights)
    return float(values[np.searchsorted(upto, upto[-1] / 2)])


def told_of_hosts(slow: Sequence[Pace]) -> str:
    """A sentence for each of both passes behind others, the slowest rank first; "" where no host is slow."""
    said = ""
    for backward in (True, False):
        these = sorted((pace for pace in slow if pace.backward is backward), key=lambda pace: -pace.ratio)
        if these:
            who, ratios = (
                _listed([str(pace.number) for pace in these]),
                _listed([f"{pace.ratio:.2f}" for pace in these]),
            )
            hosts = f"The hosts of ranks {who} take" if len(these) > 1 else f"The host of rank {who} takes"
            said += (
                f" {hosts} {ratios} times as long as the middle rank's for {these[0].what}: no single operator is slow, so "
                "look at the processor: its clock, its NUMA node, what else runs there."
            )
    return said


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
