"""The entries of a graph, in the order in which the host came to them, kept small.

A long recording has a hundred thousand launches, and a report replays several graphs of it. So launches are columns of
numbers, 80 bytes each, and so are runs, of which there are as many where a queue is full. Holds, of which there are
few, are kept as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray


class Run(NamedTuple):
    """Launches in a row, folded: what they do to the host and to each queue is linear in (max, +).

    With the host at `h` and a queue free at `q`, it is free at max(h + `alpha`, q + `beta`) afterwards, and the host is at
    `h + advance`. `number` is that of the queue's last work if somebody waits for it, else -1.
    """

    advance: float
    moves: tuple[tuple[int, float, float, int], ...]  # (queue, alpha, beta, number)
    upto: int  # launches so far, with these
    last: int  # the queue of the last launch
    lasting: float  # how long its work takes


class Launch(NamedTuple):
    """A launch that is not folded: its work begins, besides, `lag` after `source`, work of another queue, if there is one.

    If it is `collective` (a number the caller gave it), it ends when that of all ranks ends. If it belongs to a `read`, it
    takes `left` ns where the read is taken out; less than nothing: there is no such work then, and the host has `spare` ns
    that it took. A number beyond those of the reads is that of several, `Graph.together`.
    """

    host_gap: float
    latency: float
    queue: int
    gap: float
    duration: float
    source: int
    lag: float
    collective: int
    number: int
    upto: int
    read: int
    left: float = -1.0
    spare: float = 0.0


class Hold(NamedTuple):
    """A moment at which the host waits for work: the call of a read (`read` >= 0), or a step's end (`mark` >= 0)."""

    host_gap: float
    targets: tuple[int, ...]
    returns: float  # ns from the end of the work to the return of the call
    freed: float  # ns that the call takes if it waits for nothing
    read: int
    mark: int
    launched: int  # whether anything is launched after it: 0 or 1


Entry = Run | Launch | Hold
Column = NDArray[Any]
# The kinds of their fields, as numpy names them: of runs but their moves, and of these; of holds but their targets.
LAUNCHES, RUNS, MOVES, HOLDS = "ddiddidiiiidd", "diid", "iddi", "dddii"


class RunColumns(NamedTuple):
    """Runs as columns; the moves of run n are those from `first_move[n]` to `first_move[n + 1]`."""

    advance: Column
    upto: Column
    last: Column
    lasting: Column
    first_move: Column
    moves: tuple[Column, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> RunColumns:
        """These as columns."""
        rows = ((run.advance, run.upto, run.last, run.lasting) for run in runs)
        advance, upto, last, lasting = columns(RUNS, rows)
        moves = columns(MOVES, (move for run in runs for move in run.moves))
        return cls(advance, upto, last, lasting, firsts([run.moves for run in runs]), moves)

    def each(self) -> list[Run]:
        """These one by one."""
        moves = [*zip(*(column.tolist() for column in self.moves), strict=True)]
        between = (tuple(moves[first:end]) for first, end in pairwise(self.first_move.tolist()))
        numbers = zip(
            self.advance.tolist(), between, self.upto.tolist(), self.last.tolist(), self.lasting.tolist(), strict=True
        )
        return [*map(Run._make, numbers)]


class HoldColumns(NamedTuple):
    """Holds as columns, but for what they wait for."""

    host_gap: Column
    returns: Column
    freed: Column
    read: Column
    mark: Column


class HostOrder(Sequence[Entry]):
    """A list of entries, of which each is made anew when it is asked for."""

    def __init__(
        self,
        launches: tuple[Column, ...],
        runs: RunColumns,
        holds: Sequence[Hold],
        at: tuple[Sequence[int] | Column, ...],
    ) -> None:
        """Of these columns of launches and runs, and of holds; `at` are the positions of the runs, and those of the holds."""
        self.launches = tuple(np.asarray(column, code) for column, code in zip(launches, LAUNCHES, strict=True))
        kinds = zip((*runs[:5], *runs.moves), RUNS + "q" + MOVES, strict=True)
        advance, upto, last, lasting, first_move, *moves = (np.asarray(column, code) for column, code in kinds)
        self.runs, self.waits = RunColumns(advance, upto, last, lasting, first_move, tuple(moves)), holds
        positions, both = np.concatenate([np.asarray(one, np.int64) for one in at]), len(runs.advance)
        order = np.argsort(positions)
        self._positions = positions[order]
        self.which = np.where(order < both, order, both - 1 - order)  # its number among the runs; of hold n: -1 - n

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> HostOrder:
        """A list of these."""
        launches, runs, holds, at = list[Launch](), list[Run](), list[Hold](), tuple[list[int], list[int]](([], []))
        for position, entry in enumerate(entries):
            if isinstance(entry, Launch):
                launches.append(entry)
                continue
            at[isinstance(entry, Hold)].append(position)
            if isinstance(entry, Hold):
                holds.append(entry)
            else:
                runs.append(entry)
        return cls(columns(LAUNCHES, launches), RunColumns.of(runs), holds, at)

    @property
    def after(self) -> Column:
        """How many launches stand before each run and hold."""
        return self._positions - np.arange(len(self._positions))

    @cached_property
    def holds(self) -> HoldColumns:
        """What waits, as columns."""
        return HoldColumns(
            *columns(HOLDS, ((one.host_gap, one.returns, one.freed, one.read, one.mark) for one in self.waits))
        )

    def hold_at(self, position: int) -> int:
        """The number of the hold at this position."""
        return -1 - int(self.which[np.searchsorted(self._positions, position)])

    @cached_property
    def _others(self) -> list[Run | Hold]:
        runs = self.runs.each()
        return [runs[number] if number >= 0 else self.waits[-1 - number] for number in self.which.tolist()]

    def __len__(self) -> int:
        return len(self.launches[0]) + len(self.which)

    def __iter__(self) -> Iterator[Entry]:
        return self._in_order(map(Launch._make, self._each_launch()))

    def unnamed(self) -> Iterator[Run | Hold | tuple[Any, ...]]:
        """The same, launches as plain tuples: a replay takes them apart at once, and this takes half the time."""
        return self._in_order(self._each_launch())

    def _each_launch(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(memoryview(column.data) for column in self.launches), strict=True)  # no list of them all

    def _in_order(self, launches: Iterator[Any]) -> Iterator[Any]:
        begin = 0
        for position, entry in zip(self._positions.tolist(), self._others, strict=True):
            yield from islice(launches, position - begin)
            yield entry
            begin = position + 1
        yield from launches

    @overload
    def __getitem__(self, position: int) -> Entry: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Entry]: ...
    def __getitem__(self, position: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(position, slice):
            return [self[one] for one in range(*position.indices(len(self)))]
        at = range(len(self))[position]  # raises IndexError
        before = bisect_left(self._positions, at)
        if before == len(self._positions) or self._positions[before] != at:
            return Launch._make(column[at - before].item() for column in self.launches)
        number = int(self.which[before])
        return self._others[before] if number >= 0 else self.waits[-1 - number]


def firsts(rows: Sequence[Sequence[object]]) -> NDArray[np.int64]:
    """Where each of these rows begins if they stand one after the other, and where the last one ends."""
    return np.array([0, *accumulate(map(len, rows))], np.int64)


def columns(kinds: str, rows: Iterable[tuple[Any, ...]]) -> tuple[Column, ...]:
    """Rows as columns of these kinds."""
    found = [*zip(*rows, strict=True)] or [()] * len(kinds)
    return tuple(np.array(column, kind) for kind, column in zip(kinds, found, strict=True))
