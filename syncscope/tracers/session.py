"""One recording from `with` to the end: which steps are recorded, what is recorded of them, and the trace it becomes."""

from __future__ import annotations

import functools
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from syncscope.errors import UserError
from syncscope.model.trace import Lane, Trace
from syncscope.tracers import imports, native, opencl, reads, spool, steps
from syncscope.tracers.columns import Builder
from syncscope.tracers.icd import patches
from syncscope.tracers.journal import Journal, add_rows

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
        self._marked = False  # somebody marks the steps: finding them would count twice
        self._held: int | None = None  # when the first found step ended; 0: it has been counted

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
            if self._held:
                self._boundary(self._held)
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
        self._marked, self._held = True, 0
        self._boundary(time.monotonic_ns())

    def _found_step(self) -> None:
        """An optimizer has stepped. The first is held back: whoever marks steps has not yet had the chance to."""
        now = time.monotonic_ns()
        if self._marked:
            return
        if self._held is None:
            self._held = now
            return
        if self._held:
            self._boundary(self._held)
            self._held = 0
        self._boundary(now)

    def _boundary(self, at: int) -> None:
        self.count += 1
        if self._take is not None:
            self._take.boundary(at)
        imports.heard()
        self._turn()

    def _turn(self) -> None:
        """Begins or ends a take where the schedule says so."""
        length = self.wait + self.warmup + (self.active or 0)
        if self.active is None:
            if self._take is None and self.count >= self.wait + self.warmup:
                self._begin()
            return
        turn, at = divmod(self.count, length)
        if self._take is not None and turn >= self.cycle:
            self._finish()
        done = self.repeat and self.cycle >= self.repeat
        if at >= self.wait + self.warmup and not done and self._take is None:
            self._begin()

    def _begin(self) -> None:
        self._take = Take(self.count, self._spool)
        self.cycle = self.count // (self.wait + self.warmup + (self.active or 1)) + 1

    def _finish(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            trace = take.end()
            self.traces = [trace]  # the earlier ones went to on_trace: memory stays flat
            if self._on_trace is not None:
                self._on_trace(trace)


class Take:
    """What is recorded between two moments."""

    def __init__(self, first_step: int = 0, folder: Path | None = None) -> None:
        self._next = first_step
        self._queue: Any = None
        self.journal = Journal(folder)
        self.opencl = opencl.Recording(folder)
        self.opencl.start()
        reads.sinks.append(self.journal.read)
        self._listen()
        self._since = time.monotonic_ns()

    def _listen(self) -> None:
        """To the operators of our own device, once it is there."""
        module = sys.modules.get("syncscope.kernels.queue")
        if module is not None and self._queue is None:
            self._queue = module
            module.watchers.append(self.journal.operator)

    def boundary(self, at: int) -> None:
        """A step ends."""
        self.journal.step(self._next, self._since, at)
        self._next += 1
        self._since = at
        self._listen()

    def end(self) -> Trace:
        """Stops, and returns what was recorded."""
        reads.sinks.remove(self.journal.read)
        if self._queue is not None:
            self._queue.watchers.remove(self.journal.operator)
        self.opencl.stop()
        self.journal.close()
        files = [path for path in (self.opencl.path, self.journal.path) if path]
        labels = {t.native_id: t.name for t in threading.enumerate() if t.native_id is not None}
        notes = list(self.opencl.notes)
        if self.journal.lost:
            notes.append(f"{self.journal.lost} reads, operators and steps were lost: no room on the disk")
        trace = assemble(files, labels, notes)
        for path in files:
            path.unlink(missing_ok=True)
        return trace


def assemble(files: Iterable[Path], labels: dict[int, str] | None = None, notes: Iterable[str] = ()) -> Trace:
    """The trace of the files of one recording: the hook's spool and the journal beside it, as far as they go."""
    builder = Builder()
    meta: dict[str, Any] = {}
    said = list(notes)
    parts = [(path, *spool.read(path)) for path in files]
    origin = min(header["monotonic_ns"] for _, header, _ in parts)

    for path, header, records in parts:

        def lane(thread: int, process: int = header["pid"]) -> Lane:
            return Lane(process, thread, label=(labels or {}).get(thread, ""))

        meta.setdefault("origin_ns", header["origin_ns"] - (header["monotonic_ns"] - origin))
        if path.suffix == ".rows":
            add_rows(builder, records, origin, lane)
        else:
            facts = opencl.add_records(builder, records, origin, lane)
            said += facts.pop("notes")
            meta |= facts
    return builder.trace(host=platform.node(), recorder="syncscope", notes=said, **meta)


def steps_of(loader: Iterable[T]) -> Iterator[T]:
    """The batches of a loader, each of them a step of the recording."""
    for batch in loader:
        yield batch
        session = current()
        if session is not None:
            session.step()
