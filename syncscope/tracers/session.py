"""One recording from `with` to the end: which steps are recorded, what is recorded of them, and the trace it becomes."""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from syncscope.errors import UserError
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace
from syncscope.tracers import imports, native, opencl, places, reads, steps
from syncscope.tracers.columns import Builder
from syncscope.tracers.icd import patches

T = TypeVar("T")
A = ParamSpec("A")

_open: list[Session] = []


def current() -> Session | None:
    """The innermost session that is open, if any."""
    return _open[-1] if _open else None


class Session:
    """Records what the `with` block does. A trace holds `active` steps, after `wait` and `warmup` steps, `repeat` times;
    without `active`, everything up to the end. `on_trace` is called with each finished trace.

    Raises:
        UserError: a number of steps makes no sense, or another session is recording.
    """

    def __init__(
        self,
        *,
        wait: int = 0,
        warmup: int = 0,
        active: int | None = None,
        repeat: int = 1,
        spool: Path | None = None,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> None:
        if min(wait, warmup, repeat) < 0 or (active is not None and active < 1):
            raise UserError(
                f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat} records nothing",
                "active is at least 1, the others at least 0",
            )
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.traces: list[Trace] = []
        self.count = 0  # steps so far
        self.cycle = 0
        self._spool = spool
        self._on_trace = on_trace
        self._take: Take | None = None

    @property
    def trace(self) -> Trace:
        """The last finished trace.

        Raises:
            UserError: there is none yet.
        """
        if not self.traces:
            raise UserError(
                "nothing has been recorded yet", "leave the `with` block first, and make as many steps as asked"
            )
        return self.traces[-1]

    def __enter__(self) -> Session:
        if _open:
            raise UserError("a recording is already running in this process", "end it before you begin another")
        _open.append(self)
        library = native.library()
        if library is not None:
            library.arm(1)
            patches.install()
        imports.install()
        reads.install()
        steps.sinks.append(self._found_step)
        self._turn()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._finish()
        finally:
            steps.sinks.remove(self._found_step)
            reads.uninstall()
            imports.uninstall()
            library = native.library()
            if library is not None:
                library.arm(0)
                patches.uninstall()
            _open.remove(self)

    def __call__(self, function: Callable[A, T]) -> Callable[A, T]:
        """As a decorator: records every call of the function."""

        @functools.wraps(function)
        def recorded(*args: A.args, **kwargs: A.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        return recorded

    def step(self) -> None:
        """A training step ends here, and the next begins."""
        steps.marked = True
        self._boundary()

    def _found_step(self) -> None:
        if not steps.marked:
            self._boundary()

    def _boundary(self) -> None:
        self.count += 1
        if self._take is not None:
            self._take.boundary()
        imports.heard()
        self._turn()

    def _turn(self) -> None:
        """Begins or ends a take where the schedule says so."""
        length = self.wait + self.warmup + (self.active or 0)
        if self.active is None:
            if self._take is None and self.count >= self.wait + self.warmup:
                self._begin()
            return
        at = self.count % length
        if at == 0 and self.count:
            self._finish()
        done = self.repeat and self.cycle >= self.repeat
        if at == self.wait + self.warmup and not done and self._take is None:
            self._begin()

    def _begin(self) -> None:
        self._take = Take(self.count, self._spool)
        self.cycle += 1

    def _finish(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            trace = take.end()
            self.traces = [trace]  # the earlier ones went to on_trace: memory stays flat
            if self._on_trace is not None:
                self._on_trace(trace)


class Take:
    """What is recorded between two moments."""

    def __init__(self, first_step: int = 0, spool: Path | None = None) -> None:
        self.opencl = opencl.Recording(spool)
        self._rows: list[reads.Record] = []
        self._ops: list[tuple[str, int, int, bool, int]] = []
        self._first = first_step
        self._queue: Any = None
        self.unix, self.origin = time.time_ns(), time.monotonic_ns()
        self.opencl.start()
        self._sink = self._rows.append
        reads.sinks.append(self._sink)
        self._listen()
        self._boundaries = [time.monotonic_ns()]

    def _listen(self) -> None:
        """To the operators of our own device, once it is there."""
        module = sys.modules.get("syncscope.kernels.queue")
        if module is not None and self._queue is None:
            self._queue = module
            module.watchers.append(self._operator)

    def _operator(self, name: str, start: int, end: int, fallback: bool) -> None:
        self._ops.append((name, start, end, fallback, reads.local.thread))

    def boundary(self) -> None:
        """A step ends."""
        self._boundaries.append(time.monotonic_ns())
        self._listen()

    def end(self) -> Trace:
        """Stops, and returns what was recorded."""
        reads.sinks.remove(self._sink)
        if self._queue is not None:
            self._queue.watchers.remove(self._operator)
        self.opencl.stop()
        builder = Builder()
        labels = {t.native_id: t.name for t in threading.enumerate() if t.native_id is not None}
        origin, meta = self.opencl.fill(builder, labels)
        origin = origin or self.origin
        pid = os.getpid()

        def lane(thread: int) -> Lane:
            return Lane(pid, thread, label=labels.get(thread, ""))

        builder.add_events(self._events(origin, lane))
        meta.setdefault("origin_ns", self.unix)
        trace = builder.trace(host=platform.node(), recorder="syncscope", **meta)
        self.opencl.discard()
        return trace

    def _events(self, origin: int, lane: Callable[[int], Lane]) -> Iterator[Event]:
        main = lane(threading.main_thread().native_id or 0)
        for number, (start, end) in enumerate(zip(self._boundaries, self._boundaries[1:], strict=False), self._first):
            yield Event(Kind.STEP, f"ProfilerStep#{number}", main, start - origin, end - start)
        for name, start, end, fallback, thread in self._ops:
            flags = Flag.FALLBACK if fallback else Flag.NONE
            yield Event(Kind.OP, name, lane(thread), start - origin, end - start, flags=flags)
        for record in self._rows:
            yield read_event(record, origin, lane)


def read_event(record: reads.Record, origin: int, lane: Callable[[int], Lane]) -> Event:
    """A read as an event: the user's line and column, and in `detail` the library's line, the operator and the module."""
    spot = reads.spot_of(record.seen)
    place, column = places.resolve(spot) if spot else (None, -1)
    detail = {}
    if record.seen.library is not None and record.seen.user is not None:
        detail["library"] = places.short(record.seen.library)
    if record.operator:
        detail["operator"] = record.operator
    if record.module:
        detail["module"] = record.module
    return Event(
        Kind.READ,
        record.op,
        lane(record.thread),
        record.start - origin,
        record.end - record.start,
        bytes=record.bytes,
        place=place,
        column=column,
        flags=Flag.FALLBACK if record.operator else Flag.NONE,
        detail=json.dumps(detail) if detail else "",
    )


def steps_of(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording."""
    for batch in loader:
        yield batch
        session = current()
        if session is not None:
            session.step()
