"""The one recording that runs in a process: all sources and what Python saw, and the windows of it that become traces.

Traces may nest and overlap (a script with a `with syncscope.trace()` of its own under `syncscope run`): each is a window of the
same recording, which ends with the last of them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from syncscope import discover
from syncscope.errors import UserError, in_words
from syncscope.model.trace import DEVICE, Kind, Trace
from syncscope.tracers import called_lines, sources, sync_attribution
from syncscope.tracers.columns import Builder
from syncscope.tracers.hooks import autograd, listening
from syncscope.tracers.hooks.listeners import Listener, listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.job import job
from syncscope.tracers.line_texts import with_texts
from syncscope.tracers.processor_time import of_others, spent
from syncscope.tracers.python_events import PythonEvents, Written
from syncscope.tracers.sources import Source

_current: ProcessRecording | None = None
recordings_made: weakref.WeakSet[ProcessRecording] = weakref.WeakSet()  # also those that are just being begun
_numbers = itertools.count(1)
LOOK = 100_000_000  # ns between two looks at the room on the disk
changes = threading.RLock()  # whoever begins or ends a recording has it
OPTIMIZER = "Optimizer.step#"  # how torch calls the region around it


def running() -> bool:
    """Whether anybody records in this process."""
    return _current is not None


def known_sources() -> dict[str, type[Source]]:
    """Every source by the name of its file."""
    return {name: module.SOURCE for name, module in discover.discover(sources).items()}


class ProcessRecording:
    """Everything that is recorded, from the first window's start to the last one's end."""

    def __init__(self, folder: Path | None, operators: bool, memory: bool) -> None:
        self.users = 0
        self.pending = 0  # windows whose trace may still be asked for
        self.kept = folder is not None  # whoever gave the folder looks at what is left in it, until the trace is safe
        self._dry = self._over = False
        self._sources: list[Source] = []
        self._heard: list[Source] = []  # those of them that want to hear of steps
        self._looked = time.monotonic_ns()
        self._failures: list[str] = []  # what went wrong as it ended, in words
        self._job: dict[str, Any] = {}  # which rank it is; the program may take its process group down before the end
        self.events = PythonEvents(folder)
        recordings_made.add(self)
        self.events.operators_wanted += operators
        self.events.memory_wanted += memory
        try:
            self._running = self._begun()
        except BaseException:
            self.remove()
            raise

    def _begun(self) -> contextlib.ExitStack:
        """Starts everything; what is returned stops it."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.events.close)
            for make in known_sources().values():
                source = make()
                self._sources.append(source)
                stack.callback(self._ended, source, source.stop)  # also where its start fails half way
                source.start(self.events)
                self._heard.append(source)
            stack.callback(patches.when_imported("torch", autograd.install))
            listener = Listener(read=self.events.read, region=self.events.annotation, modules=True, sync_debug=True)
            stack.enter_context(listening(listener))
            return stack.pop_all()

    def _ended(self, source: Source, end: Callable[[], object], what: str = "end") -> bool:
        """Ends a source, whatever becomes of it: what others have recorded is not lost with it. Whether it went well."""
        try:
            end()
        except Exception as failed:
            self._failures.append(f"{_named(source)} could not {what} as it should: {in_words(failed)}")
            return False
        return True

    def boundary(self) -> None:
        """A step has ended, or something else is wanted of the sources."""
        self._dry |= listeners.pretend is not None
        if "backend" not in self._job:
            self._job = job() or self._job
        if self._over:  # steps that go on are none of its own: a source that has ended must not begin
            return
        for source in self._heard.copy():
            if not self._ended(source, source.boundary, "go on"):
                self._heard.remove(source)

    def demand_room(self) -> None:
        """Looks whether there is still room.

        Raises:
            UserError: there is not, and what comes is lost.
        """
        now, why = time.monotonic_ns(), self.stopped
        if now - self._looked > LOOK:
            self._looked = now
            why = why or self.events.file.why_enough()
        if why:
            raise UserError(why)

    @property
    def stopped(self) -> str:
        """Why no more is recorded, though it has not ended; "" while there is."""
        return self.events.stopped or next((why for source in self._sources if (why := source.stopped)), "")

    @property
    def lingers(self) -> bool:
        """Whether it still slows the program, though it has ended."""
        return any(source.lingers for source in self._sources)

    def stop(self) -> None:
        """Nothing more is heard."""
        self._dry |= listeners.pretend is not None
        self._over = True
        self._running.close()

    def so_far(self) -> Trace:
        """What there is of it, once the device has done what it was asked to."""
        self._dry |= listeners.pretend is not None
        if self.users:
            for source in self._sources:
                self._ended(source, source.settle)
            self.events.flush()
        else:
            self._running.close()
        labels = {t.native_id: t.name for t in threading.enumerate() if t.native_id is not None}
        labels[os.getpid()] = "MainThread"  # whose number threading does not correct after a fork
        self._job |= job()
        found = assemble([self.events, *self._sources], self.events.began, self.events.began_unix, labels)
        if self._failures:
            found = replace(found, meta=found.meta | {"notes": [*found.meta.get("notes", []), *self._failures]})
        found = replace(found, meta=found.meta | self._job)  # type: ignore[arg-type]  # its keys are Meta's
        return replace(found, meta=found.meta | {"dry": True}) if self._dry else found

    def remove(self) -> None:
        """Take the files away, once nobody records into them any more, nor wants what is in them."""
        if not self.users and not self.pending:
            self.unlink()

    def unlink(self) -> None:
        """Take the files away, whoever records into them."""
        self.events.remove()
        for source in self._sources:
            source.remove()

    @property
    def files(self) -> list[Path]:
        """What is on disk of it."""
        files = (*self.events.files, *(path for source in self._sources for path in source.files))
        return [path for path in files if path.exists()]


class Window:
    """The part of the recording between two moments, with steps of its own."""

    def __init__(
        self,
        first_step: int,
        folder: Path | None,
        record_shapes: bool,
        operators: bool,
        memory: bool,
    ) -> None:
        global _current
        with changes:
            if _current is None:
                _current = ProcessRecording(folder, operators, memory)
            self.recording = _current
            self.recording.users += 1
            self.recording.pending += 1
            self._want_shapes(+record_shapes)
        self._record_shapes = record_shapes
        self._number = next(_numbers)
        self._step = first_step
        self._spent = spent()
        self._others: float | None = None
        self._ended = 0  # ns of CLOCK_MONOTONIC; 0 while it goes on
        self._had = False  # its trace
        self._alone = False  # nobody else recorded when it ended
        self.began = self._since = time.monotonic_ns()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ended > 0

    def _want_shapes(self, more: int) -> None:
        if more:
            self.recording.events.shapes_wanted += more
            self.recording.boundary()

    def boundary(self, at: int) -> None:
        """A step ends."""
        self.recording.events.step(self._step, self._since, at, self._number)
        self._step += 1
        self._since = at
        self.recording.boundary()

    def forget_steps(self) -> None:
        """Those that have ended were none: the first goes on since the start."""
        self._number, self._step, self._since = next(_numbers), 0, self.began

    def stop(self) -> None:
        """It ends here: what was recorded can be had later, or never."""
        global _current
        if self._ended:
            return
        self._ended = time.monotonic_ns()
        with changes:
            self.recording.users -= 1
            self._want_shapes(-self._record_shapes)
            self._others = of_others(self._spent, spent())
            self._alone = not self.recording.users
            if self._alone:
                _current = None
                self.recording.stop()

    def drop(self) -> None:
        """It ends, and nobody wants it any more."""
        self.stop()
        self.recording.pending -= not self._had
        self._had = True
        self.recording.remove()

    def end(self) -> Trace:
        """The trace of what was recorded since the start."""
        self.stop()
        try:
            with changes:
                whole = self.recording.so_far()
        finally:
            self.recording.pending -= not self._had
            self._had = True
        found = cut(whole, self._number, self.began, None if self._alone else self._ended)
        return found if self._others is None else replace(found, meta=found.meta | {"others": self._others})


def assemble(
    parts: Sequence[Source | PythonEvents | Written], origin: int, origin_ns: int, labels: dict[int, str] | None = None
) -> Trace:
    """The trace of what these have, with times from `origin` (CLOCK_MONOTONIC), which was `origin_ns` since 1970."""
    builder = Builder(labels)
    meta: dict[str, Any] = {"origin_ns": origin_ns, "monotonic_ns": origin}
    notes: list[str] = []
    ends: list[int] = []
    for part in parts:
        try:
            facts = part.add(builder, origin)
        except Exception as failed:  # what others have recorded is not lost with it
            notes.append(f"{_named(part)} cannot be read: {in_words(failed)}")
            continue
        notes += facts.pop("notes", ())
        if (until := facts.pop("until", None)) is not None:
            ends.append(until)
        for key, value in facts.items():
            meta[key] = meta[key] | value if isinstance(meta.get(key), dict) else (meta.get(key) or value)
    if ends:
        meta["until"] = min(ends) - origin
    trace = builder.trace(host=platform.node(), recorder="syncscope", notes=notes, **meta)
    return _steps_apart(called_lines.with_lines(sync_attribution.placed(trace)))


def _named(part: object) -> str:
    return type(part).__module__.rpartition(".")[2]


def _steps_apart(trace: Trace) -> Trace:
    """A step that was found ends with its optimizer's region. torch tells of it within, so that the mark would cut the region.

    ```text
    told    step 0 |- optimizer -X-|  step 1          X: the hook, where each recorded step ends
    shown   step 0 |- optimizer ---|X step 1
    ```
    """
    steps = trace.rows(Kind.STEP)
    optimizers = np.array([name.startswith(OPTIMIZER) for name in trace.names], bool)
    regions = trace.rows(Kind.ANNOTATION)
    regions = regions[optimizers[trace.name[regions]]]
    start, end = trace.start.copy(), trace.end.copy()
    for lane in np.unique(trace.lane[steps]):
        own = steps[trace.lane[steps] == lane]
        around = regions[trace.lane[regions] == lane]
        around = around[np.argsort(trace.start[around])]
        if not len(around):
            continue
        for moments in (start, end):
            at = np.searchsorted(trace.start[around], moments[own], side="right") - 1
            within = (at >= 0) & (moments[own] < trace.end[around[at]])
            moments[own[within]] = trace.end[around[at[within]]]
    return replace(trace, start=start, duration=end - start).take(np.lexsort((start - end, start)))


def cut(trace: Trace, window: int, began: int, ended: int | None) -> Trace:
    """One window: its steps, the events that the host began between two moments of CLOCK_MONOTONIC, and the device's work
    that they launched. Where the disk was full before its end, it ends there: a step of which a part is missing is none."""
    meta = trace.meta.copy()
    shift = began - meta.pop("monotonic_ns")
    until = meta.pop("until", None)
    kept = trace.start >= shift
    if ended is not None:
        kept &= trace.start < shift + ended - began
    if until is not None:
        kept &= trace.start < until
    steps = trace.kind == Kind.STEP
    device = np.isin(trace.kind, DEVICE)
    launched = np.isin(trace.correlation, trace.correlation[kept & ~device & ~steps & (trace.correlation >= 0)])
    own = trace.correlation == window
    if until is not None:
        own &= trace.end <= until
    kept = np.where(device, launched, np.where(steps, own, kept))
    part = trace.take(kept)
    memory = trace.memory.between(shift, None if ended is None else shift + ended - began) if trace.memory else None
    meta["origin_ns"] += shift
    correlation = np.where(part.kind == Kind.STEP, -1, part.correlation)
    shifted = None if memory is None else memory.shifted(shift)
    return with_texts(replace(part, start=part.start - shift, correlation=correlation, meta=meta, memory=shifted))


def forget() -> None:
    """In the child of a fork: the recording is the parent's."""
    global _current
    _current = None
    recordings_made.clear()


os.register_at_fork(after_in_child=forget)
