"""What devices' memory was asked for while a recording ran, as columns; and what a report says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.source import Place

INTEGERS = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Allocations:
    """Every allocation and every free, as columns of equal length, ordered by time.

    `time` is ns of the trace's clock; `bytes` are what was allocated, less than 0 what was freed; `total` is what was in use
    on the device afterwards and `reserved` what its allocator held, -1 where that is not known. `lane` is the thread, `place`
    the user's line, as in the trace whose they are; -1 is none.
    """

    time: INTEGERS
    address: INTEGERS
    bytes: INTEGERS
    total: INTEGERS
    reserved: INTEGERS
    device: INTEGERS
    lane: INTEGERS
    place: INTEGERS

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Allocations:
        """Of rows, in any order; those of the same time stay in theirs."""
        table = np.array(rows, np.int64).reshape(len(rows), len(fields(cls)))
        return cls(*table[np.argsort(table[:, 0], kind="stable")].T)

    @classmethod
    def together(cls, parts: Iterable[Allocations]) -> Allocations:
        """Those of several sources."""
        known = [np.stack(list(part.columns().values()), axis=1) for part in parts]
        return cls.of(np.concatenate(known) if known else ())  # type: ignore[arg-type]  # an array is rows, too

    def __len__(self) -> int:
        return len(self.time)

    def columns(self) -> dict[str, INTEGERS]:
        """The columns by their names."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def take(self, rows: NDArray[Any]) -> Allocations:
        """These rows only (indices or a mask)."""
        return Allocations(**{name: values[rows] for name, values in self.columns().items()})

    def between(self, begin: int, end: int | None) -> Allocations:
        """What was allocated and freed from `begin` until, not including, `end` (None: the end)."""
        kept = self.time >= begin
        return self.take(kept if end is None else kept & (self.time < end))

    def shifted(self, ns: int) -> Allocations:
        """The same, by a clock whose zero is so much later."""
        return replace(self, time=self.time - ns)


@dataclass(frozen=True, slots=True)
class Held:
    """What one line (or function, operator, or nothing that is known) held of a device's memory at its high-water mark.

    `function` is set where only the enclosing function is known: then `place` is the line on which it begins.
    """

    place: Place | None
    function: str
    operator: str
    bytes: int
    count: int

    @property
    def name(self) -> str:
        """Where it was allocated, in words."""
        if self.place is None:
            return self.operator or ("no line known" if self.count else "from before the recording")
        return f"{self.function}() ({self.place})" if self.function else str(self.place)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of one device: how much was in use, and what made it the most. Bytes, times in ns of the trace's clock.

    `before` was in use when the recording began, and its lines are not known; `made_by` is the allocation that reached
    `peak`, at the time `peak_at`, in step `step` (-1: in none). `held` says what was in use then, the most first. `curve` is
    what was in use over time, `(time, bytes)` from there on; of very many allocations it keeps the highest of each stretch.
    `exact` is False where the recording does not say what was in use before it: then all is above that.
    """

    device: int
    before: int
    peak: int
    peak_at: int
    step: int
    made_by: Held
    held: tuple[Held, ...]
    reserved: int
    allocations: int
    exact: bool = True
    curve: INTEGERS = field(default_factory=lambda: np.zeros((0, 2), np.int64), compare=False, repr=False)
