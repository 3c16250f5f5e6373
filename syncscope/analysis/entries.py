"""The entries of a graph, in the order in which the host came to them, kept small.

A long recording has a hundred thousand launches, and a report replays several graphs of it. So launches are columns of
numbers, 80 bytes each. Runs and holds, of which there are few, are kept as they are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
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
COLUMNS = "ddiddidiiiidd"  # of launches, as `array` names them


class HostOrder(Sequence[Entry]):
    """A list of entries to which one is added at a time; each is made anew when it is asked for."""

    def __init__(self) -> None:
        self._launches: tuple[array[Any], ...] = tuple(array(code) for code in COLUMNS)
        self._add = tuple(column.append for column in self._launches)
        self._others: list[Run | Hold] = []
        self._positions: list[int] = []  # of the others

    @classmethod
    def of(cls, launches: tuple[NDArray[Any], ...], others: list[Run | Hold], positions: list[int]) -> HostOrder:
        """One of these columns of launches, one for each field, and of the others at their positions, in order."""
        made = cls()
        for column, values in zip(made._launches, launches, strict=True):
            column.frombytes(np.asarray(values, column.typecode).tobytes())
        made._others, made._positions = others, positions
        return made

    def append(self, entry: Entry) -> None:
        """Add one as the last."""
        if isinstance(entry, Launch):
            self.launch(*entry)
        else:
            self._positions.append(len(self))
            self._others.append(entry)

    def launch(self, *entry: Any) -> None:
        """Add a `Launch` of these as the last."""
        for add, value in zip(self._add, entry, strict=True):
            add(value)

    def __len__(self) -> int:
        return len(self._launches[0]) + len(self._others)

    def __iter__(self) -> Iterator[Entry]:
        return self._in_order(map(Launch._make, zip(*self._launches, strict=True)))

    def unnamed(self) -> Iterator[Run | Hold | tuple[Any, ...]]:
        """The same, launches as plain tuples: a replay takes them apart at once, and this takes half the time."""
        return self._in_order(zip(*self._launches, strict=True))

    def _in_order(self, launches: Iterator[Any]) -> Iterator[Any]:
        begin = 0
        for position, entry in zip(self._positions, self._others, strict=True):
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
        if before < len(self._positions) and self._positions[before] == at:
            return self._others[before]
        return Launch._make(column[at - before] for column in self._launches)
