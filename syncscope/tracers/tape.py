"""The one recording that runs in a process: the hook's spool and the journal, and the windows of it that become traces.

Traces may nest and overlap (a script with a `with syncscope.trace()` of its own under `syncscope run`): each is a window of the
same tape, which ends with the last of them.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from syncscope.errors import UserError
from syncscope.model.trace import DEVICE, Kind, Lane, Trace
from syncscope.tracers import cuda, marks, opencl, reads, spool
from syncscope.tracers.columns import Builder
from syncscope.tracers.journal import Journal, add_rows
from syncscope.tracers.operators import Operators

_tape: Tape | None = None
_numbers = itertools.count(1)
_lock = threading.RLock()


class Tape:
    """Everything that is recorded, from the first window's start to the last one's end."""

    def __init__(self, folder: Path | None) -> None:
        self.users = 0
        self._rescued = (
            folder is not None
        )  # whoever gave the folder looks at what is left in it, until the trace is safe
        self.began = time.monotonic_ns()
        self.journal = Journal(folder)
        self.operators = Operators(self.journal)
        self.opencl = opencl.Recording(folder)
        self._dry = reads.pretend is not None
        try:
            self.opencl.start()
        except UserError:
            self.journal.close()
            self.journal.path.unlink(missing_ok=True)
            raise
        self.profiled: cuda.Profiled | None = None
        reads.sinks.append(self.journal.read)
        reads.regions.append(self.journal.annotation)
        reads.modules_wanted += 1
        self.listen()

    def listen(self) -> None:
        """To the operators of our own device, and to torch.profiler for CUDA, once they are there."""
        if self.profiled is None and cuda.wanted():
            self.profiled = cuda.Profiled()
            self.profiled.start()
        elif self.profiled is not None:
            self.profiled.anchor()
        self.operators.listen()

    @property
    def files(self) -> list[Path]:
        """Where it goes."""
        return [path for path in (self.opencl.path, self.journal.path) if path]

    def so_far(self, only: int) -> Trace:
        """What there is of it, once the device has done what it was asked to; the steps of window `only`."""
        if self.users:
            self.opencl.settle()
            self.journal.flush()
            if self.profiled is not None:  # there is no reading without ending
                self.profiled.stop()
                self.profiled.notes.append("an inner recording ended torch.profiler's: later device times are missing")
        else:
            self._stop()
        notes = list(self.opencl.notes)
        if self.journal.lost:
            notes.append(f"{self.journal.lost} reads, operators and steps were lost: no room on the disk")
        labels = {t.native_id: t.name for t in threading.enumerate() if t.native_id is not None}
        labels[os.getpid()] = "MainThread"  # whose number threading does not correct after a fork
        try:
            found = assemble(self.files, labels, notes, only, self.profiled)
            self._dry |= reads.pretend is not None
            return replace(found, meta=found.meta | {"dry": True}) if self._dry else found
        finally:
            if not self._rescued:
                self.remove()

    def remove(self) -> None:
        """Take the files away, once nobody records into them any more."""
        if not self.users:
            for path in self.files:
                path.unlink(missing_ok=True)

    def _stop(self) -> None:
        reads.sinks.remove(self.journal.read)
        reads.regions.remove(self.journal.annotation)
        reads.modules_wanted -= 1
        self.operators.stop()
        if self.profiled is not None:
            self.profiled.stop()
        self.opencl.stop()
        self.journal.close()


class Window:
    """The part of the tape between two moments, with steps of its own."""

    def __init__(self, first_step: int = 0, folder: Path | None = None, record_shapes: bool = False) -> None:
        global _tape
        with _lock:
            if _tape is None:
                _tape = Tape(folder)
            self.tape = _tape
            self.tape.users += 1
            self.tape.operators.want_shapes(+record_shapes)
        self._record_shapes = record_shapes
        self._number = next(_numbers)
        self._step = first_step
        self.began = self._since = time.monotonic_ns()

    def boundary(self, at: int) -> None:
        """A step ends."""
        self.tape.journal.step(self._step, self._since, at, self._number)
        self._step += 1
        self._since = at
        self.tape.listen()

    def end(self) -> Trace:
        """The trace of what was recorded since the start."""
        global _tape
        now = time.monotonic_ns()
        with _lock:
            self.tape.users -= 1
            self.tape.operators.want_shapes(-self._record_shapes)
            if not self.tape.users:
                _tape = None
            whole = self.tape.so_far(self._number)
        return cut(whole, self.began, now if self.tape.users else None)


def assemble(
    files: Iterable[Path],
    labels: dict[int, str] | None = None,
    notes: Iterable[str] = (),
    only: int = 0,
    profiled: cuda.Profiled | None = None,
) -> Trace:
    """The trace of the files of one recording, as far as they go: the hook's spool and the journal beside it.

    `only` chooses the window whose steps count (0: the first).
    """
    builder = Builder()
    meta: dict[str, Any] = {}
    said = list(notes)
    parts = [(path, *spool.read(path)) for path in files]
    origin = min(header["monotonic_ns"] for _, header, _ in parts)
    for path, header, records in parts:

        def lane(thread: int, process: int = header["pid"]) -> Lane:
            return Lane(process, thread, label=(labels or {}).get(thread, ""))

        meta.setdefault("origin_ns", header["origin_ns"] - (header["monotonic_ns"] - origin))
        meta["monotonic_ns"] = origin
        add_rows(builder, records, origin, lane, only)
        if path.suffix != ".rows":
            facts = opencl.add_records(builder, records, header["functions"], origin, lane)
            said += facts.pop("notes")
            meta |= facts
    if profiled is not None:
        facts = profiled.add(builder, origin)
        said += facts.pop("notes")
        for key, value in facts.items():
            meta[key] = meta[key] | value if isinstance(meta.get(key), dict) else (meta.get(key) or value)
    found = builder.trace(host=platform.node(), recorder="syncscope", notes=said, **meta)
    return marks.placed(found)


def cut(trace: Trace, began: int, ended: int | None) -> Trace:
    """The events that the host began between two moments of CLOCK_MONOTONIC, and the device's work that they launched."""
    meta = trace.meta.copy()
    shift = began - meta.pop("monotonic_ns")
    kept = trace.start >= shift
    if ended is not None:
        kept &= trace.start < shift + ended - began
    kept |= trace.kind == Kind.STEP
    device = np.isin(trace.kind, DEVICE)
    launched = np.isin(trace.correlation, trace.correlation[kept & ~device & (trace.correlation >= 0)])
    kept = np.where(device, launched, kept)
    part = trace.take(kept)
    meta["origin_ns"] += shift
    return replace(part, start=part.start - shift, meta=meta)


def recover(folder: Path) -> Trace | None:
    """The trace of a process that died while it recorded into this folder; None where it left nothing.

    The journal is written once a second at a step or a read, the hook's spool with every call.
    """
    files = [path for pattern in ("*.spool", "*.rows") for path in sorted(folder.glob(pattern))]
    if not files:
        return None
    whole = assemble(files, notes=["the program ended without ending its recording: what it had written is here"])
    return cut(whole, whole.meta["monotonic_ns"], None)


def forget() -> None:
    """In the child of a fork: the recording is the parent's."""
    global _tape
    if _tape is not None:
        reads.sinks.clear()
        reads.guards.clear()
        reads.regions.clear()
        _tape = None


os.register_at_fork(after_in_child=forget)
