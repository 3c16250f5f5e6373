"""Builds a `Trace` from pieces, by columns: ten million events never become objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from syncscope.model.memory import Allocations
from syncscope.model.source import Place
from syncscope.model.trace import WAY, Event, Lane, Meta, Table, Trace
from syncscope.tracers.lines.library import unpacked, ways

PLACES = ("place", "caller", "forward")  # columns that hold numbers of places
TABLES = {"name": "names", "lane": "lanes", "detail": "details"} | dict.fromkeys(PLACES, "places")
COLUMNS = tuple(f.name for f in fields(Trace) if f.name not in {*TABLES.values(), "functions", "meta", "memory"})


class Builder:
    """Collects blocks of columns whose names, lanes, places and details are numbered in shared tables.

    `labels` names threads of the host by the number that the system gave them.
    """

    def __init__(self, labels: Mapping[int, str] | None = None) -> None:
        self._labels = labels or {}
        self.tables: dict[str, Table[Any]] = {table: Table() for table in TABLES.values()}
        self._blocks: list[dict[str, NDArray[Any]]] = []
        self._memory: list[Allocations] = []
        self._functions: dict[Place, str] = {}
        self._lines = np.full(1, -1, np.int64)  # places by the numbers of lines in records; 0 is none

    def named(self, place: Place, function: str) -> Place:
        """The place, which stands in this function."""
        self._functions.setdefault(place, function)
        return place

    def know_lines(self, known: Mapping[int, tuple[Place, str]]) -> None:
        """What the numbers of lines in the records to come mean: a place, and the function in which it stands."""
        self._lines = np.full(max(known, default=0) + 1, -1, np.int64)
        self._lines[list(known)] = self.numbers("place", [self.named(*line) for line in known.values()])

    def lines(self, packed: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Place, caller and forward of calls, by the three numbers in each."""
        return {
            column: self._lines[np.where(at < len(self._lines), at, 0)]
            for column, at in zip(PLACES, unpacked(packed), strict=True)
        }

    def flags(self, packed: NDArray[np.int64], own: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
        """The flags of calls: their `own`, and the ways by which their lines came to them."""
        return ways(packed) << WAY | own

    def numbers(self, column: str, values: Iterable[Any]) -> NDArray[np.int64]:
        """The numbers of these values in the column's table; None is -1."""
        table = self.tables[TABLES[column]]
        return np.array([-1 if value is None else table[value] for value in values], np.int64)

    def thread(self, process: int, thread: int) -> Lane:
        """The lane of a thread of the host."""
        return Lane(process, thread, label=self._labels.get(thread, ""))

    def add(self, count: int, **columns: Any) -> None:
        """Adds events by columns (arrays or one value for all); what is not given is not known."""
        block = {}
        for column in COLUMNS:
            default = 0 if column == "flags" else -1
            block[column] = np.broadcast_to(np.asarray(columns.get(column, default)), (count,))
        self._blocks.append(block)

    def add_events(self, events: Iterable[Event]) -> None:
        """Adds events one by one."""
        self.add_trace(Trace.of(events))

    def add_trace(self, part: Trace) -> None:
        """Adds all events of a trace, as they are."""
        block = {column: getattr(part, column) for column in COLUMNS}
        for column, table in TABLES.items():
            numbers = np.append(self.numbers(column, getattr(part, table)), -1)
            block[column] = numbers[block[column]]
        for place, function in zip(part.places, part.functions, strict=False):
            self.named(place, function)
        self._blocks.append(block)

    def add_memory(self, part: Allocations) -> None:
        """Adds allocations and frees whose lanes and places are numbered by `numbers`."""
        if len(part):
            self._memory.append(part)

    def trace(self, **meta: Unpack[Meta]) -> Trace:
        """The trace of everything added, ordered by start."""
        empty = Trace.of(())
        columns: dict[str, Any] = {}
        for column in COLUMNS:
            dtype = getattr(empty, column).dtype
            blocks = [block[column].astype(dtype, copy=False) for block in self._blocks]
            columns[column] = np.concatenate([getattr(empty, column), *blocks])
        order = np.lexsort((-columns["duration"], columns["start"]))
        tables: dict[str, Any] = {table: tuple(values) for table, values in self.tables.items()}
        if self._functions:
            tables["functions"] = tuple(self._functions.get(place, "") for place in tables["places"])
        memory = Allocations.together(self._memory) if self._memory else None
        return Trace(**{c: v[order] for c, v in columns.items()}, **tables, meta=meta, memory=memory)
