"""What lines would save: each alone, each last, its Shapley share, and changed in other ways than removed.

Removing one wait often only moves it to the next one, so no single number is a line's price. *Alone* is what is saved if
nothing else changes, *last* what is saved by it when all others are gone already; the Shapley share lies between, is fair
to lines that need each other, and the shares add up to what removing all of them saves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.entries import Hold
from syncscope.analysis.graph import Graph
from syncscope.analysis.replay import Outcome, replay, replay_all
from syncscope.analysis.steps import alike
from syncscope.model.report import Price

EXACT = 5  # up to so many lines every subset is replayed
PERMUTATIONS = 16  # orders sampled for the shares of more lines, and their reverses
MOST = 32  # lines priced one by one
MODES = 12  # lines whose other ways of changing are priced, the dearest first
ENOUGH = 0.9  # the part of what can be had that the plan must give


@dataclass(frozen=True, slots=True)
class TimedPart:
    """The part of a graph that is timed: from the end of step `first` to the end of step `last`, as `steps` steps.

    -1 is the begin and the end of the recording; `since`, ns, is where the device comes to the first step if that is later.
    """

    first: int = -1
    last: int = -1
    steps: int = 1
    since: float = 0.0

    def span(self, graph: Graph) -> tuple[float, float]:
        """Begin and end of this part in the recording, ns of the graph."""
        since = graph.ends[self.first] if self.first >= 0 else self.since
        return since, graph.ends[self.last] if self.last >= 0 else graph.end

    def length(self, end: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """ns per step of each scenario, from what `replay_all` gives."""
        upto = end if self.last < 0 else ends[:, self.last]
        since = ends[:, self.first] if self.first >= 0 else self.since
        per_step: NDArray[np.float64] = (upto - since) / self.steps
        return per_step

    def of(self, outcome: Outcome) -> float:
        """ns per step of one replay."""
        return float(self.length(np.array([outcome.end]), np.array([outcome.ends]).reshape(1, -1))[0])


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of lines (and of single reads, if asked for), ns per step; `plan` is lines in the order to fix them.

    `saving` is that of all but those that are `left`: without them a step would be longer, for what then runs over all rows, or
    nobody knows how long.
    """

    step: float
    saving: float
    lines: tuple[Price, ...]
    plan: tuple[int, ...]
    plan_saving: float
    left: tuple[int, ...] = ()


def timed_part(graph: Graph) -> TimedPart:
    """The steady steps where at least four were recorded, or some warmed up; else the whole recording."""
    steady = alike(graph.steps)
    return (
        TimedPart(steady[0] - 1, steady[-1], len(steady), graph.begin)
        if len(graph.steps) >= 4 or len(steady) < len(graph.steps)
        else TimedPart(steps=max(1, len(steady)), since=graph.begin)
    )


def unpriced(graph: Graph) -> frozenset[int]:
    """Reads that are always made: after them the recording shows no further launch, and what they delay was not recorded; or
    they stand in a step that compiled, whose work the counted steps would have to catch up on."""
    settled = {step.index for step in graph.steps if step.settled}
    unsettled = {step.index for step in graph.steps} - settled if settled else set()
    found = {number for number, read in enumerate(graph.reads) if read.step in unsettled}
    for number, holds in enumerate(graph.holds):
        last = graph.stream[max(holds)] if holds else None
        if isinstance(last, Hold) and not last.launched:
            found.add(number)
    return frozenset(found)


def prices(
    graph: Graph, lines: Sequence[Sequence[int]], seed: int = 0, unknown: Collection[int] = frozenset()
) -> Prices:
    """Price lines, each given as the numbers of its reads in the graph. Of some it is `unknown` what is done in their place.

    Of more than `MOST` lines those that waited longest are priced one by one and the others together: what those are worth is
    divided among them by how long they waited. So the replays are as many for any number of lines.
    """
    if len(lines) <= MOST:
        return _prices(graph, lines, seed, unknown)
    waited = [sum(graph.reads[m].blocked for m in members) for members in lines]
    order = sorted(range(len(lines)), key=lambda i: -waited[i])
    few, rest = order[: MOST - 2], order[MOST - 2 :]
    together = ([i for i in rest if i not in unknown], [i for i in rest if i in unknown])
    groups = [[i] for i in sorted(few)] + [group for group in together if group]
    priced = _prices(
        graph,
        [[m for i in group for m in lines[i]] for group in groups],
        seed,
        {number for number, group in enumerate(groups) if group[0] in unknown},
    )
    found: dict[int, Price] = {}
    for group, price in zip(groups, priced.lines, strict=True):
        whole = sum(waited[i] for i in group)
        for i in group:
            part = waited[i] / whole if whole else 1 / len(group)
            each = (price.alone * part, price.last * part, price.share * part, price.share_error * part)
            found[i] = price if len(group) == 1 else Price(*each)
    return Prices(
        priced.step,
        priced.saving,
        tuple(found[i] for i in range(len(lines))),
        tuple(i for number in priced.plan for i in groups[number]),
        priced.plan_saving,
        tuple(sorted(i for number in priced.left for i in groups[number])),
    )


def within(found: Prices, most: float) -> Prices:
    """The same prices in proportion, where all together would save more than a step can be shorter by, ns: a replay does not
    know that host and device have one processor, and a step without waits is still as long as the host's own work."""
    if found.saving <= max(0.0, most):
        return found
    part = max(0.0, most) / found.saving

    def of(price: Price) -> Price:
        other = (price.deferred, price.merged, price.asynchronous)
        parts = (None if saved is None else saved * part for saved in other)
        return Price(price.alone * part, price.last * part, price.share * part, price.share_error * part, *parts)

    lines = tuple(of(price) for price in found.lines)
    return replace(found, saving=found.saving * part, lines=lines, plan_saving=found.plan_saving * part)


def _prices(graph: Graph, lines: Sequence[Sequence[int]], seed: int, unknown: Collection[int]) -> Prices:
    value = _SetFunction(graph, lines)
    count = len(lines)
    single = np.eye(count, dtype=bool)
    kept, blocks = _worthwhile(graph, lines, value, unknown)
    alone, last = value(single | blocks), value(kept | blocks) - value(kept & ~single)
    saving = float(value(kept[None])[0])
    chosen = np.flatnonzero(kept)

    def of_chosen(sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        rows = np.zeros((len(sets), count), bool)
        rows[:, chosen] = sets
        return value(rows)

    share, error = np.zeros(count), np.zeros(count)
    share[chosen], error[chosen] = shapley(of_chosen, len(chosen), alone[chosen], seed)
    found = [
        Price(float(a), float(b), float(s), float(e)) for a, b, s, e in zip(alone, last, share, error, strict=True)
    ]
    dearest = sorted(range(count), key=lambda i: -max(found[i].share, found[i].last))[:MODES]
    for i in dearest:
        if max(found[i].last, found[i].alone, found[i].share) > 1e-3 * value.step:
            found[i] = _with_modes(graph, lines[i], value, found[i])
    order, plan_saving = plan_of(of_chosen, len(chosen), saving, [found[i] for i in chosen])
    plan = tuple(int(chosen[i]) for i in order)
    return Prices(value.step, saving, tuple(found), plan, plan_saving, tuple(np.flatnonzero(~kept).tolist()))


def _worthwhile(
    graph: Graph, lines: Sequence[Sequence[int]], value: SetFunction, unknown: Collection[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The set of lines that saves most: all, without those that are `unknown`, or select rows where that makes a step longer.

    With the lines that go with each line that is left out, for a mask is rewritten wherever it selects; a row of booleans a
    line.
    """
    count = len(lines)
    line_of = {read: number for number, members in enumerate(lines) for read in members}
    kept, blocks = np.ones(count, bool), np.zeros((count, count), bool)
    by_mask = {frozenset(line_of[r] for r in reads if r in line_of) for reads in graph.together}
    kept[list(unknown)] = False
    blocks[np.ix_(list(unknown), list(unknown))] = True
    candidates = [block for block in by_mask if block and block.isdisjoint(unknown)]
    while candidates:
        rows = np.repeat(kept[None], len(candidates), axis=0)
        for row, block in zip(rows, candidates, strict=True):
            row[list(block)] = False
        rest = value(rows)
        best = int(np.argmax(rest))
        if rest[best] <= value(kept[None])[0]:
            break
        kept = rows[best]
        members = sorted(candidates.pop(best))
        blocks[np.ix_(members, members)] = True
    return kept, blocks


def alone_and_last(
    graph: Graph, sets: Sequence[Sequence[int]], others: Sequence[int]
) -> tuple[list[float], list[float]]:
    """What sets of reads save, each by itself and each when the other sets and `others` are gone already."""
    value = _SetFunction(graph, [*sets, list(others)])
    rows = np.eye(len(sets), len(sets) + 1, dtype=bool)
    everything = float(value(np.ones((1, len(sets) + 1), bool))[0])
    return value(rows).tolist(), (everything - value(~rows)).tolist()


class SetFunction(Protocol):
    """What removing sets of lines saves, ns per step; a row of booleans is a set."""

    step: float

    def __call__(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """One number for each set."""


class _SetFunction:
    """What removing sets of lines saves, ns per step; a row of booleans is a set."""

    def __init__(self, graph: Graph, lines: Sequence[Sequence[int]]) -> None:
        self.graph = graph
        self.window = timed_part(graph)
        self._reads = np.zeros((len(lines), len(graph.reads)), bool)
        left = unpriced(graph)
        for number, members in enumerate(lines):
            self._reads[number, [m for m in members if m not in left]] = True
        self.step = self.window.of(replay(graph))
        self._known: dict[bytes, float] = {}

    def __call__(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        packed = [row.tobytes() for row in np.packbits(sets, axis=1)]
        new = {key: i for i, key in enumerate(packed) if key not in self._known}
        if new:
            freed = (sets[list(new.values())].astype(np.uint8) @ self._reads.astype(np.uint8)) > 0
            lengths = self.window.length(*replay_all(self.graph, freed))
            self._known.update(zip(new, (self.step - lengths).tolist(), strict=True))
        return np.array([self._known[key] for key in packed])


def shapley(
    value: Callable[[NDArray[np.bool_]], NDArray[np.float64]], count: int, alone: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each line's mean gain over orders of fixing them, and the standard error of that mean."""
    if count <= 1:
        return alone.copy(), np.zeros(count)
    if count <= EXACT:
        orders = np.array(list(itertools.permutations(range(count))))
        sampled = False
    else:
        random = np.random.default_rng(seed)
        forth = np.array([random.permutation(count) for _ in range(PERMUTATIONS)])
        orders = np.concatenate([forth, forth[:, ::-1]])
        sampled = True
    prefixes = np.zeros((len(orders), count, count), bool)
    for size in range(count):
        np.put_along_axis(prefixes[:, size], orders[:, : size + 1], True, axis=1)
    worth = value(prefixes.reshape(-1, count)).reshape(len(orders), count)
    gains = np.diff(worth, axis=1, prepend=0.0)
    by_line = np.empty_like(gains)
    np.put_along_axis(by_line, orders, gains, axis=1)
    if not sampled:
        return by_line.mean(axis=0), np.zeros(count)
    pairs = (by_line[:PERMUTATIONS] + by_line[PERMUTATIONS:]) / 2
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(PERMUTATIONS)


def _with_modes(graph: Graph, members: Sequence[int], value: _SetFunction, price: Price) -> Price:
    """The price with what is saved if the line is deferred by a step, merged, or made an asynchronous copy."""
    left = unpriced(graph)
    own = [m for m in members if m not in left]
    by_step: dict[int, list[int]] = {}
    for member in own:
        if graph.steps and graph.reads[member].step < 0:
            continue  # between the steps
        by_step.setdefault(graph.reads[member].step if graph.steps else member, []).append(member)

    def saved(outcome: Outcome) -> float:
        return value.step - value.window.of(outcome)

    moved: dict[int, tuple[int, ...]] = {}
    before: list[tuple[int, ...]] = []
    for step in sorted(by_step):
        holds = [p for m in by_step[step] for p in graph.holds[m]]
        for ordinal, position in enumerate(holds):
            moved[position] = before[ordinal] if ordinal < len(before) else ()
        before = [_targets(graph, p) for p in holds]
    deferred = saved(replay(graph, moved=moved)) if graph.steps else None  # there is no step before
    merged = saved(replay(graph, freed={m for step in by_step.values() for m in step[:-1]})) if graph.steps else None
    marks = {step.index: number for number, step in enumerate(graph.steps)}
    at_end: dict[int, tuple[int, ...]] = {}
    for step, group in by_step.items():
        if step in marks:
            at_end[marks[step]] = tuple(t for m in group for p in graph.holds[m] for t in _targets(graph, p))
    asynchronous = saved(replay(graph, freed=own, at_step_end=at_end)) if graph.steps else None
    return Price(price.alone, price.last, price.share, price.share_error, deferred, merged, asynchronous)


def _targets(graph: Graph, position: int) -> tuple[int, ...]:
    entry = graph.stream[position]
    return entry.targets if isinstance(entry, Hold) else ()


def plan_of(
    value: Callable[[NDArray[np.bool_]], NDArray[np.float64]], count: int, saving: float, found: Sequence[Price]
) -> tuple[tuple[int, ...], float]:
    """The fewest lines that give most of the saving: all, without one after the other that is missed least; then ordered."""
    kept = [i for i in range(count) if max(found[i].alone, found[i].last, found[i].share) > 0]
    if not kept or saving <= 0:
        return (), 0.0

    def worth(sets: list[list[int]]) -> NDArray[np.float64]:
        rows = np.zeros((len(sets), count), bool)
        for row, members in zip(rows, sets, strict=True):
            row[members] = True
        return value(rows)

    while len(kept) > 1:
        without = [[k for k in kept if k != i] for i in kept]
        rest = worth(without)
        best = int(np.argmax(rest))
        if rest[best] < ENOUGH * saving:
            break
        kept = without[best]
    order: list[int] = []
    left = sorted(kept, key=lambda i: -found[i].share)
    while left:
        gains = worth([[*order, i] for i in left])
        order.append(left.pop(int(np.argmax(gains))))
    return tuple(order), float(worth([order])[0])
