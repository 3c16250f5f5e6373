"""What Python saw (reads, operators, steps, regions), written as it comes, in the same 64-byte records as the hook's.

Memory stays flat and a killed process leaves what it knew: rows go to disk every few thousand, and once a second at a step or
a read.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.source import Place
from syncscope.model.trace import Flag, Kind, Table
from syncscope.tracers import places, record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.listeners import Record
from syncscope.tracers.job import job
from syncscope.tracers.lines import library as lines
from syncscope.tracers.record_columns import RecordRows

READ, OP, STEP, ANNOTATION = 7, 8, 9, 10  # record types after the hook's own
NAME = "python"  # of the source in the header of a file
KINDS = {READ: Kind.READ, OP: Kind.OP, STEP: Kind.STEP, ANNOTATION: Kind.ANNOTATION}
BATCH = 32768  # rows between two writes
FLUSH = 1_000_000_000  # ns after which a step or a read writes what there is


class PythonEvents:
    """Events on their way to disk; sources tell theirs here.

    In a record `queue` is the column, `corr` the place, `b` its caller and `a` the detail, by their names; that of a place says
    its function, too.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.began, self.began_unix = time.monotonic_ns(), time.time_ns()
        self.shapes_wanted = 0  # by how many windows: what operators were given
        self.operators_wanted = 0  # and those of the CPU, where a source leaves them out otherwise
        self.memory_wanted = 0  # and what is allocated and freed, by line
        self.file = record_file.RecordFile(NAME, folder, job=job())
        lines.start(self.file.handle)
        self._reads: deque[Record] = deque()
        self._ops: deque[tuple[int, str, int, int, int, int, int]] = deque()
        self._steps: deque[tuple[int, int, int, int, int]] = deque()
        self._names = Table[str]()
        self._written = 0  # how many of them are on disk
        self._known: dict[Any, tuple[int, int, int, int]] = {}
        self._lock = threading.Lock()
        self._flushed = time.monotonic_ns()
        self._over = False
        self._until: int | None = None  # when the first began that found no room

    @property
    def files(self) -> Sequence[Path]:
        """Where they go."""
        return (self.file.path,)

    @property
    def stopped(self) -> str:
        """Why nothing more is written."""
        return self.file.stopped

    def remove(self) -> None:
        """Takes the file away."""
        self.file.remove()

    def read(self, record: Record) -> None:
        """A line has read."""
        self._reads.append(record)
        if len(self._reads) > BATCH or record.end - self._flushed > FLUSH:
            self.flush()

    def fact(self, text: str) -> int:
        """The number of a detail that rows may name from now on, on any thread; it goes to disk with the next of them."""
        with self._lock:
            return self._number(text)

    def operator(self, name: str, start: int, end: int, how: int, thread: int, detail: int) -> None:
        """An operator of our own device has run on this thread; `how` is queue.py's, `detail` a number that `fact` gave."""
        self._ops.append((OP, name, start, end, how, thread, detail))
        if len(self._ops) > BATCH:
            self.flush()

    def annotation(self, name: str, start: int, end: int) -> None:
        """A `record_function` of the user's has ended on this thread."""
        self._ops.append((ANNOTATION, name, start, end, 0, reads.local.thread, 0))

    def step(self, number: int, start: int, end: int, window: int) -> None:
        """A step of this window has ended on this thread."""
        self._steps.append((number, start, end, reads.local.thread, window))
        if end - self._flushed > FLUSH:
            self.flush()

    def flush(self) -> None:
        """Writes what there is; a full disk ends it, and is not raised: the program must not die of its profiler."""
        with self._lock:
            self._flushed = time.monotonic_ns()
            if self._over:  # what comes now is of no recording
                for late in (self._steps, self._reads, self._ops):
                    late.clear()
                return
            rows = [self._step_row(*row) for row in _drain(self._steps)]
            read = self._read_rows(_drain(self._reads))
            ops = self._op_rows(_drain(self._ops))
            new = list(self._names)[self._written :]
            text = [
                r
                for number, name in enumerate(new, self._written + 1)
                for r in record_file.name_records(number, name.encode())
            ]
            self._written = len(self._names)
            found = np.concatenate([np.array(rows, record_file.RECORD), read, ops])
            there = self.file.append(b"".join(text) + found.tobytes())
            if len(found) and not there and self._until is None:
                self._until = int(found["t0"].min())

    def close(self) -> None:
        """Writes the rest."""
        if not self._over:
            lines.stop()
            self.flush()
            with self._lock:
                self._over = True
            self.file.close()

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds what is on disk, as a source does."""
        contents = self.file.read()
        add_lines(builder, contents)
        add_rows(builder, contents, origin)
        lost = f"{self.file.lost} records of syncs, operators and steps were lost: {self.file.stopped}"
        unknown = [f"launches have no lines: {why}"] if (why := lines.why_not()) else []
        notes = unknown + ([lost] if self.file.lost else [])
        return {"notes": notes, "until": self._until, "read_ns": round(reads.cost.usual)}

    def _number(self, name: str) -> int:
        return self._names[name] + 1 if name else 0

    def _step_row(self, number: int, start: int, end: int, thread: int, window: int) -> tuple[int, ...]:
        return (STEP, 0, 0, 0, thread, 0, self._number(f"ProfilerStep#{number}"), 0, -1, start, end, 0, window)

    def _op_rows(self, ops: list[tuple[int, str, int, int, int, int, int]]) -> NDArray[Any]:
        """By columns: there are hundreds of operators in a step, and a row at a time would cost more than recording them."""
        rows = np.zeros(len(ops), record_file.RECORD)
        if ops:
            kinds, names, starts, ends, hows, threads, details = zip(*ops, strict=True)
            rows["type"], rows["name"] = kinds, [self._number(name) for name in names]
            rows["t0"], rows["t1"], rows["tid"], rows["size"], rows["a"] = starts, ends, threads, -1, details
            rows["flags"] = np.array((Flag.NONE, Flag.FALLBACK, Flag.ANEW), np.uint8)[list(hows)]
        return rows

    def _read_rows(self, found: list[Record]) -> NDArray[Any]:
        rows = np.zeros(len(found), record_file.RECORD)
        if found:
            ops, seen, threads, starts, ends, sizes, operators, modules, selections = zip(*found, strict=True)
            keys = list(zip(seen, operators, modules, selections, strict=True))
            for key, record in dict(zip(keys, found, strict=True)).items():
                if key not in self._known:
                    self._known[key] = self._described(record)
            numbers = {op: self._number(op) for op in set(ops)}
            rows["type"], rows["name"] = READ, [numbers[op] for op in ops]
            rows["corr"], rows["b"], rows["queue"], rows["a"] = np.array([self._known[key] for key in keys]).T
            rows["t0"], rows["t1"], rows["tid"], rows["size"] = starts, ends, threads, sizes
            rows["flags"] = np.where(np.array(operators) != "", Flag.FALLBACK, Flag.NONE)
        return rows

    def _described(self, r: Record) -> tuple[int, int, int, int]:
        """Numbers of the innermost line outside of torch, of the user's that led there if it is a library's, and of the detail;
        the column is the third."""
        spot = r.seen.inner or r.seen.user or r.seen.library
        caller = r.seen.user if r.seen.user is not spot else None
        library = places.short(r.seen.library) if r.seen.library is not None and r.seen.user is not None else ""
        kept, rows, gradient = r.selection or (None, None, False)
        detail = Detail(r.module, library, r.operator, kept=kept, rows=rows, gradient=int(gradient) or None)
        column = places.resolve(spot)[1] if spot else -1
        return self._line(spot), self._line(caller), max(0, column), self._number(detail.text())

    def _line(self, spot: places.Spot | None) -> int:
        return self._number(f"{places.resolve(spot)[0]}\n{spot.code.co_qualname}") if spot else 0


class Written:
    """The events of a process that has ended, as the part of a recording that they are."""

    def __init__(self, contents: record_file.Contents) -> None:
        self._contents = contents

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds them, as a source does."""
        add_lines(builder, self._contents)
        add_rows(builder, self._contents, origin)
        return {**self._contents.header.get("job", {})}


def _drain(rows: deque[Any]) -> list[Any]:
    """Takes out what is there; another thread may append meanwhile."""
    return [rows.popleft() for _ in range(len(rows))]


def add_lines(builder: Builder, contents: record_file.Contents) -> None:
    """Tells a builder what the numbers of lines mean, before others add what names them."""
    builder.know_lines(lines.known(record_file.texts(contents.records, record_file.LINE)))


def add_rows(builder: Builder, contents: record_file.Contents, origin: int) -> None:
    """Adds the events of a file to a builder. A step's correlation is its window, until one is cut out."""
    names = record_file.texts(contents.records)
    records = RecordRows(contents.records).of(*KINDS)
    records = records[np.isin(records["name"], list(names))]
    if not len(records):
        return
    table = [names.get(i) for i in range(max(names, default=0) + 1)]

    def numbered(column: str, used: NDArray[np.int64], make: Callable[[str], Any]) -> NDArray[np.int64]:
        """From this file's numbers to the builder's, for the names that are used in this column."""
        of = np.full(len(table), -1, np.int64)
        used = record_file.known(used, len(table))
        present = [int(i) for i in np.unique(used) if table[i] is not None]
        of[present] = builder.numbers(column, [make(table[i] or "") for i in present])
        found: NDArray[np.int64] = of[used]
        return found

    def line(text: str) -> Place:
        return builder.named(*lines.of(text))

    threads, at = np.unique(records["tid"], return_inverse=True)
    kinds = np.zeros(max(KINDS) + 1, np.int64)
    kinds[list(KINDS)] = [int(kind) for kind in KINDS.values()]
    builder.add(
        len(records),
        kind=kinds[records["type"]],
        name=numbered("name", records["name"], str),
        lane=builder.numbers("lane", [builder.thread(contents.header["pid"], int(t)) for t in threads])[at],
        start=records["t0"] - origin,
        duration=records["t1"] - records["t0"],
        correlation=np.where(records["type"] == STEP, records["b"], -1),
        bytes=records["size"],
        place=numbered("place", records["corr"], line),
        caller=numbered("caller", np.where(records["type"] == READ, records["b"], 0), line),
        column=np.where(records["queue"] > 0, records["queue"], -1),
        flags=records["flags"],
        detail=numbered("detail", records["a"], str),
    )
