"""What prices were off by, of recordings like this one: between what ends four in five of them lay.

Loops were recorded, and timed in turns as written and without their waits; `benchmarks/calibrate.py` makes the table beside
this file from that. By kind of recording it has the quantiles of (true - said) / (`FLOOR` + `OF_SAID` said + open), in parts of
a step: what is said of more is off by more, and so is what a recording leaves open, for a replay gets it wrong or cannot
explain it. Downwards what the linter's rewrites save less comes to that, upwards what may go along with the waits.
They are those that hold the next recording in four of five cases, each loop counting once (split conformal prediction, locally
weighted). A kind of which fewer than `FEW` loops were measured is pooled with all of its machine.

Source of the method: Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005; the ranks of finite samples are
those of Lei et al., "Distribution-Free Predictive Inference for Regression", 2018.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscope.model.ops import COPIES, COUNTS

TABLE = Path(__file__).with_name("experience.json")
FEW = 20  # loops of a kind from which on it stands by itself
COVERED = 0.8  # of recordings like this one
RANKED = 0.82  # ... of which the quantiles are: the bound cuts off some of what they say
NEARLY = 1e-9
LONGER = 0.1  # of a step: where it became longer by more, the rewrite gave the device other work to do
# what a figure is off by is proportional to this part of a step, and so much of what is said
FLOOR, OF_SAID = 0.05, 0.3
BUSY = 0.1  # the part of the processors, which are the device, that others had


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a recording is like, in words: on what, and what is read."""

    machine: str
    reads: str

    @property
    def pools(self) -> tuple[str, ...]:
        """Its name, and that of what it is pooled with where too little is known of it."""
        return f"{self.machine}, {self.reads}", self.machine


def kind_of(ops: Collection[str], processor: bool, others: float) -> Likeness:
    """Of what kind a recording is whose lines read by these `ops`; `others` is the part of the processors that others had."""
    machine = "a GPU" if not processor else "a busy processor" if others > BUSY else "a processor"
    rows = any(op in COUNTS for op in ops)
    copies = any(op in COPIES or "device" in op or op == "to" for op in ops)
    return Likeness(machine, "rows" if rows else "copies" if copies else "values")


@dataclass(frozen=True, slots=True)
class Experience:
    """Of so many `loops`, in `measured` recordings, true - said lay between `low` and `high` times what it is off by."""

    low: float
    high: float
    loops: int
    measured: int

    def around(self, said: float, left_open: float, less: float = 0.0, more: float = 0.0) -> tuple[float, float]:
        """Between what the truth lies where that is said, so much of a step is left open, and by so much `less` or `more` other
        fixes of the same waits differ."""
        off = weight(said, left_open)
        return said + self.low * (off + less), said + self.high * (off + more)


def weight(said: float, left_open: float) -> float:
    """What such a figure is off by is proportional to."""
    return FLOOR + OF_SAID * max(0.0, said) + left_open


def experience(kind: Likeness) -> Experience | None:
    """What is known of recordings of that kind; None where none was ever measured."""
    classes = _table()["kinds"]
    found = next((classes[name] for name in kind.pools if name in classes), None)
    return None if found is None else Experience(**found)


@functools.cache
def _table() -> Any:
    return json.loads(TABLE.read_text())


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A recording of a loop: what was said of its waits, what they really cost, what no fix can pass, and what it left `open`
    (a replay got wrong or could not explain); by how much `less` what the linter offers saves, and how much `more` may go
    along; parts of a step."""

    loop: str
    kind: Likeness
    said: float
    true: float
    bound: float
    open: float = 0.0
    less: float = 0.0
    more: float = 0.0

    @property
    def off(self) -> float:
        """By how much the truth is off, of what it is proportional to."""
        beyond = self.more if self.true > self.said else self.less
        return (self.true - self.said) / (weight(self.said, self.open) + beyond)


def of_waits(pairs: Sequence[MeasuredPair]) -> list[MeasuredPair]:
    """Those whose step did not become much longer: there the rewrite gave the device other work to do."""
    return [pair for pair in pairs if pair.true >= -LONGER]


def learned(pairs: Sequence[MeasuredPair]) -> dict[str, Experience]:
    """The table; of each name that is known of enough loops, and of every machine."""
    of: dict[str, list[MeasuredPair]] = {}
    for pair in of_waits(pairs):
        for name in pair.kind.pools:
            of.setdefault(name, []).append(pair)
    found = {}
    for name, some in sorted(of.items()):
        loops = len({pair.loop for pair in some})
        if loops >= FEW or ", " not in name:
            found[name] = Experience(*ends((pair.loop, pair.off) for pair in some), loops, len(some))
    return found


def clipped(pair: MeasuredPair, known: Experience) -> tuple[float, float]:
    """Between what its truth is said to lie: what was said is within, and nothing passes the bound."""
    low, high = known.around(pair.said, pair.open, pair.less, pair.more)
    return min(low, pair.said), min(max(high, pair.said), pair.bound)


def holds(pair: MeasuredPair, low: float, high: float) -> bool:
    """Whether its truth lies there."""
    return low <= pair.true <= high


def left_out(pairs: Sequence[MeasuredPair], together: Collection[str] = ()) -> list[tuple[MeasuredPair, float, float]]:
    """Each pair of waits with the interval that those of all other loops give for it, clipped by its bound. Loops that are left
    out `together` are told by none of each other, and then only they are told."""
    pairs = of_waits(pairs)
    found = []
    for loops in [set(together)] if together else [{loop} for loop in sorted({pair.loop for pair in pairs})]:
        table = learned([pair for pair in pairs if pair.loop not in loops])
        for pair in (pair for pair in pairs if pair.loop in loops):
            known = next((table[name] for name in pair.kind.pools if name in table), None)
            if known is not None:
                found.append((pair, *clipped(pair, known)))
    return found


def ends(some: Iterable[tuple[str, float]]) -> tuple[float, float]:
    """Between what the next value lies in `RANKED` of the cases; those of one loop together count as much as one.

    Of n loops the ranks are (n + 1) times what is left out to either side; with few, the least and the most that was seen.
    """
    values = sorted(some, key=lambda pair: pair[1])
    each = Counter(loop for loop, _ in values)
    beside = (1 - RANKED) / 2
    lowest, highest = (len(each) + 1) * beside, (len(each) + 1) * (1 - beside)
    reached, low, high = 0.0, values[0][1], values[-1][1]
    for loop, value in values:
        reached += 1 / each[loop]
        if reached <= lowest:
            low = value
        if reached >= highest - NEARLY:
            high = value
            break
    return low, high
