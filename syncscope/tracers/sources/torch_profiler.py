"""ROCm, and CUDA with operators of the CPU: device and driver times from torch.profiler, without stacks; the lines come from
our own recorder. CUDA alone is recorded by `cupti`.

Operators of the CPU are left out unless they are asked for: they are most of what torch.profiler costs, and reads, lines and
the replay need the driver's calls and the device's work only. Threads of the driver's calls then have the numbers of POSIX
threads (`thread_aliases`), and clocks meet at a call of the driver instead of a region of the host.

torch.profiler keeps its events in memory until the end: long runs want `active=`. A program that starts a profiler of its own
gets it, and ours ends there: there is one Kineto in a process.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope import kineto
from syncscope.model.trace import Kind, Lane, Trace
from syncscope.tracers import clocks, redirect
from syncscope.tracers.columns import COLUMNS, TABLES, Builder
from syncscope.tracers.cupti import library
from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.pinned import of_uploads
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.sources import GOOD, WARN, Item, Source

# What the host did at a time that we know on our clock and find on the profiler's: a call of the driver that asks the device
# for nothing and that nobody makes in a step, or a region where there is no driver.
ANCHOR = "syncscope clock"
ANCHORS = re.compile(rf"^{ANCHOR}$"), re.compile("^(?:cuda|hip)DeviceGetStreamPriorityRange$")
WARM = 8  # of them at the start: the first take long
KEPT = ("devices", "backend", "rank", "world_size", "groups")  # of what torch.profiler says of the whole recording
WITHOUT = (
    "operators of the CPU were not recorded: waits inside of them have their line and no operator's name, and TensorBoard's "
    "table of operators is empty (operators=True, or syncscope run --operators, records them and costs more)"
)
SYSTEM = 20_000  # ns by which Kineto's idea of the system's clock may be wrong
OFFSET = 1 << 40  # added to correlations, so that they do not meet the hook's


def wanted() -> bool:
    """Whether there is a device here that only torch.profiler can time."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False) or redirect.target is not None:
        return False
    return _available()


@functools.cache
def _available() -> bool:
    import torch

    return bool(torch.cuda.is_available())


class Anchor(NamedTuple):
    """A thread did what `ANCHORS` finds between two readings of our clock, ns."""

    before: int
    after: int
    thread: int = -1  # the system's number


def _region() -> None:
    from torch.autograd.profiler import record_function

    with record_function(ANCHOR):
        pass


class TorchProfiler(Source):
    """A recording by torch.profiler, from the moment that there is a device for it; `add` puts it onto our clock.

    `host_only` leaves the device out, for machines that have none.
    """

    def __init__(self, host_only: bool = False) -> None:
        self.notes: list[str] = []
        self._host_only = host_only
        self._begun = False
        self._profiler: Any = None
        self._trace: Trace | None = None
        self._events: PythonEvents | None = None
        self._anchors: list[Anchor] = []
        self._ask: Callable[[], object] = _region
        self._lock = threading.RLock()

    def start(self, events: PythonEvents) -> None:
        """Begins where there is a device already."""
        self._events = events
        self.boundary()

    def boundary(self) -> None:
        """Begins once there is a device; then notes a moment on both clocks: a few us, worth it at every step."""
        if self._begun:
            self.anchor()
        elif not serving and wanted():
            self.begin()

    def settle(self) -> None:
        """There is no reading without ending."""
        if self._profiler is not None:
            self.stop()
            self.notes.append("an inner recording ended torch.profiler's: later device times are missing")

    def begin(self) -> None:
        """Begins, unless the program's own profiler is running."""
        self._begun = True
        import torch
        from torch._C._profiler import _ExperimentalConfig

        if torch.autograd._profiler_enabled():
            self.notes.append("a profiler of the program was running already: no device times from torch.profiler")
            return
        which = torch.profiler.ProfilerActivity
        if self._host_only:
            activities = [which.CPU]
        else:
            operators = self._events is not None and self._events.operators_wanted
            activities = [which.CPU, which.CUDA] if operators else [which.CUDA]
            self.notes += [] if operators else [WITHOUT]
            torch.cuda.current_stream()  # torch asks for the range itself when it makes its first streams
            self._ask = torch.cuda.Stream.priority_range
        self._profiler = torch.profiler.profile(
            activities=activities,
            acc_events=True,  # without it, torch warns of cycles
            experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True),  # what each wait was for
        )
        serving.append(self)
        try:
            self._profiler.start()
        except BaseException:  # there is nothing to stop
            serving.remove(self)
            self._profiler = None
            raise
        self._profiler.profiler.acc_events = False  # which would have it parse everything again when it ends: seconds
        for _ in range(WARM):
            self.anchor()

    def anchor(self) -> None:
        """Notes a moment on both clocks."""
        if self._profiler is None:
            return
        before = monotonic_ns()
        self._ask()
        self._anchors.append(Anchor(before, monotonic_ns(), threading.get_native_id()))

    def stop(self) -> None:
        """Ends and reads what was recorded."""
        with self._lock:
            self.anchor()
            profiler, self._profiler = self._profiler, None
            if profiler is None:
                return
            serving.remove(self)
            profiler.stop()
            self.lingers = not self._host_only  # torch leaves CUPTI attached
            handle, name = tempfile.mkstemp(suffix=".json")
            os.close(handle)
            try:
                profiler.export_chrome_trace(name)
                self._trace = kineto.read(name)
            finally:
                Path(name).unlink(missing_ok=True)
                # It refers to itself here: all that it has recorded would be freed by Python's garbage collector, which takes
                # tenths of a second, in the middle of some later step.
                profiler.action_map.clear()

    def give_way(self, profiler: Any) -> None:
        """A profiler starts: the program's own, unless it is ours."""
        if self._profiler is not None and self._profiler.profiler is not profiler:
            self.notes.append("the program started a profiler of its own: device times from torch.profiler end there")
            self.stop()

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds the events, on our clock; what belongs into the trace's meta."""
        if self._trace is None:
            return {"notes": self.notes}
        meta = add_trace(builder, self._trace, origin, self._anchors, thread_aliases()) | {"notes": self.notes}
        return meta | of_uploads(self._trace.names)

    @classmethod
    def describe(cls) -> Iterator[Item]:
        """Torch, and the devices that only it can time."""
        try:
            import torch
        except ImportError:
            yield Item("torch", WARN, "not installed: only plain OpenCL programs can be traced", "pip install torch")
            return
        yield Item("torch", GOOD, torch.__version__)
        if not torch.cuda.is_available():
            hint = "scripts that ask for cuda: syncscope run --device ocl script.py"
            yield Item("CUDA, ROCm", WARN, "none here", hint)
            return
        kind = "ROCm" if torch.version.hip else "CUDA"
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        through = "CUPTI" if library.library() is not None and library.activities() is not None else "torch.profiler"
        yield Item(kind, GOOD, f"{names}: traced through {through}, lines by our own recorder", traceable=True)


def thread_aliases() -> dict[int, int]:
    """The system's numbers of this process's threads by what Kineto calls one that it has not been told of: the lower half of
    its POSIX number, without sign."""
    known = {t.ident: t.native_id for t in threading.enumerate() if t.ident and t.native_id} | reads.threads
    return {abs(ctypes.c_int32(posix).value): native for posix, native in known.items()}


def add_trace(
    builder: Builder, trace: Trace, origin: int, anchors: Sequence[Anchor], aliases: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """Adds a trace of torch.profiler in which what `ANCHORS` finds was done, in order, between two readings of our clock each.

    Steps and the anchors themselves are left out: the recorder has its own steps. A thread that the recorder knows keeps
    its lane, so that its operators and calls lie around and inside the lines that read; `aliases` are other numbers of threads.
    """
    rows = np.zeros(0, np.intp)
    for pattern in ANCHORS:
        if not len(rows) and len(trace):
            rows = np.flatnonzero(np.array([bool(pattern.search(name)) for name in trace.names], bool)[trace.name])
    rows = rows[np.argsort(trace.start[rows])]
    clock, met = _clock(trace, rows, anchors, origin)
    aliases = dict(aliases or {})
    for row, anchor in met:
        if anchor.thread >= 0 and isinstance(number := trace.lanes[trace.lane[row]].thread, int):
            aliases[number] = anchor.thread
    kept = trace.kind != Kind.STEP
    kept[[row for row, _ in met]] = False
    part = trace.take(kept)
    block = {column: getattr(part, column) for column in COLUMNS}
    block["start"] = clock.to_host(part.start)
    block["correlation"] = np.where(part.correlation >= 0, part.correlation.astype(np.int64) + OFFSET, -1)
    known = {(lane.process, lane.thread): lane for lane in builder.tables["lanes"] if lane.device < 0}
    lanes = [_ours(lane, known, aliases) if lane.device < 0 else lane for lane in part.lanes]
    for column, values in {**{c: getattr(part, table) for c, table in TABLES.items()}, "lane": lanes}.items():
        numbers = np.append(builder.numbers(column, values), -1)
        block[column] = numbers[block[column]]
    builder.add(len(part), **block)
    meta: dict[str, Any] = {key: value for key, value in part.meta.items() if key in KEPT and value is not None}
    if clock.source != "none":
        meta["clocks"] = {"torch.profiler": clock.facts()}
    return meta


def _ours(lane: Lane, known: Mapping[Any, Lane], aliases: Mapping[int, int]) -> Lane:
    if isinstance(lane.thread, int) and lane.thread in aliases:
        lane = replace(lane, thread=aliases[lane.thread], label="")
    return known.get((lane.process, lane.thread), lane)


def _clock(
    trace: Trace, rows: NDArray[np.intp], anchors: Sequence[Anchor], origin: int
) -> tuple[clocks.Clock, list[tuple[int, Anchor]]]:
    """Kineto's clock, and which row is which anchor.

    It is the system's clock, to some us: where the program did the same as our anchors, ours are the nearest by it.
    """
    roughly = trace.meta.get("origin_ns", 0) - (time_ns() - monotonic_ns())  # what to add for ours
    met = list(zip(rows.tolist(), anchors, strict=False))
    if len(rows) > len(anchors) or not met:
        at = trace.start[rows] + roughly
        for _ in range(2):  # those of the steps are far apart, and tell which of the first ones is which
            near = [int(np.argmin(np.abs(at - anchor.before))) for anchor in anchors if len(rows)]
            at -= int(np.median([at[i] - anchor.before for i, anchor in zip(near, anchors, strict=False)] or [0]))
        met = [(int(rows[i]), anchor) for i, anchor in zip(near, anchors, strict=False)]
    elif len(rows) < len(anchors):
        met = []
    if not met:
        if not len(trace) or not trace.meta.get("origin_ns"):
            return clocks.Clock(trace.start[:1], trace.start[:1], 0.0, "none"), []  # it begins where we do
        return clocks.Clock(trace.start[:1], np.array([origin - roughly]), float(SYSTEM), "system"), []
    found = np.array([row for row, _ in met])
    before, after = (np.array([anchor[i] for _, anchor in met]) - origin for i in (0, 1))
    return clocks.from_regions(trace.start[found], trace.end[found], before, after), met


serving: list[Any] = []  # the source that times CUDA: `give_way(profiler)` is called where a profiler of torch's starts


def _make_way(torch: Any) -> None:
    """Has the program's own profilers stop ours first."""
    profile = torch.autograd.profiler.profile
    original: Callable[..., Any] = profile._prepare_trace

    @functools.wraps(original)
    def prepare(self: Any) -> Any:
        for ours in serving.copy():
            ours.give_way(self)
        return original(self)

    patches.replace(profile, "_prepare_trace", prepare)


SOURCE = TorchProfiler
patches.when_imported("torch", _make_way)
