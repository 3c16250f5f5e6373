"""CUDA and ROCm: device and driver times from torch.profiler, without stacks; the lines come from our own recorder.

torch.profiler keeps its events in memory until the end: long runs want `active=`. A program that starts a profiler of its own
gets it, and ours ends there: there is one Kineto in a process.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np

from syncscope import kineto
from syncscope.model.trace import Kind, Trace
from syncscope.tracers import clocks, redirect
from syncscope.tracers.columns import COLUMNS, TABLES, Builder
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.sources import GOOD, WARN, Item, Source

ANCHOR = "syncscope clock"  # a region of the host whose time we know on our clock and find on the profiler's
WARM = 8  # of them at the start: the first take long
KEPT = ("devices", "backend", "rank", "world_size")  # of what torch.profiler says of the whole recording
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
        self._anchors: list[tuple[int, int]] = []
        self._lock = threading.RLock()

    def start(self, events: PythonEvents) -> None:
        """Begins where there is a device already."""
        self.boundary()

    def boundary(self) -> None:
        """Begins once there is a device; then notes a moment on both clocks: a few us, worth it at every step."""
        if self._begun:
            self.anchor()
        elif wanted():
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
        activities = [which.CPU] if self._host_only else [which.CPU, which.CUDA]
        self._profiler = torch.profiler.profile(
            activities=activities,
            acc_events=True,  # without it, torch warns of cycles
            experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True),  # what each wait was for
        )
        _running.append(self)
        self._profiler.start()
        for _ in range(WARM):
            self.anchor()

    def anchor(self) -> None:
        """Notes a moment on both clocks."""
        if self._profiler is None:
            return
        from torch.autograd.profiler import record_function

        before = monotonic_ns()
        with record_function(ANCHOR):
            pass
        self._anchors.append((before, monotonic_ns()))

    def stop(self) -> None:
        """Ends and reads what was recorded."""
        with self._lock:
            self.anchor()
            profiler, self._profiler = self._profiler, None
            if profiler is None:
                return
            _running.remove(self)
            profiler.stop()
            handle, name = tempfile.mkstemp(suffix=".json")
            os.close(handle)
            try:
                profiler.export_chrome_trace(name)
                self._trace = kineto.read(name)
            finally:
                Path(name).unlink(missing_ok=True)

    def give_way(self) -> None:
        """The program starts a profiler of its own."""
        if self._profiler is not None:
            self.notes.append("the program started a profiler of its own: device times from torch.profiler end there")
            self.stop()

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds the events, on our clock; what belongs into the trace's meta."""
        if self._trace is None:
            return {"notes": self.notes}
        return add_trace(builder, self._trace, origin, self._anchors) | {"notes": self.notes}

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
        yield Item(kind, GOOD, f"{names}: traced through torch.profiler, lines by our own recorder", traceable=True)


def add_trace(builder: Builder, trace: Trace, origin: int, anchors: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Adds a trace of torch.profiler in which the regions ANCHOR lie, in order, between two readings of our clock each.

    Steps and the anchors themselves are left out: the recorder has its own steps. A thread that the recorder knows keeps
    its lane, so that its operators lie around and inside the lines that read.
    """
    named = np.array([name == ANCHOR for name in trace.names], bool)
    rows = np.flatnonzero(named[trace.name]) if len(trace) else np.zeros(0, np.int64)
    clock = clocks.Clock(trace.start[:1], trace.start[:1], 0.0, "none")  # without an anchor it begins where we do
    if len(rows) and len(rows) == len(anchors):
        rows = rows[np.argsort(trace.start[rows])]
        before, after = (np.array(times) - origin for times in zip(*anchors, strict=True))
        clock = clocks.from_regions(trace.start[rows], trace.end[rows], before, after)
    part = trace.take(~named[trace.name] & (trace.kind != Kind.STEP)) if len(trace) else trace
    block = {column: getattr(part, column) for column in COLUMNS}
    block["start"] = clock.to_host(part.start)
    block["correlation"] = np.where(part.correlation >= 0, part.correlation + OFFSET, -1)
    known = {(lane.process, lane.thread): lane for lane in builder.tables["lanes"] if lane.device < 0}
    lanes = [known.get((lane.process, lane.thread), lane) if lane.device < 0 else lane for lane in part.lanes]
    for column, values in {**{c: getattr(part, table) for c, table in TABLES.items()}, "lane": lanes}.items():
        numbers = np.append(builder.numbers(column, values), -1)
        block[column] = numbers[block[column]]
    builder.add(len(part), **block)
    meta: dict[str, Any] = {key: value for key, value in part.meta.items() if key in KEPT and value is not None}
    if clock.source != "none":
        meta["clocks"] = {"torch.profiler": clock.facts()}
    return meta


_running: list[TorchProfiler] = []


def _make_way(torch: Any) -> None:
    """Has the program's own profilers stop ours first."""
    profile = torch.autograd.profiler.profile
    original: Callable[..., Any] = profile._prepare_trace

    @functools.wraps(original)
    def prepare(self: Any) -> Any:
        for ours in _running.copy():
            if ours._profiler is not None and ours._profiler.profiler is not self:
                ours.give_way()
        return original(self)

    patches.replace(profile, "_prepare_trace", prepare)


SOURCE = TorchProfiler
patches.when_imported("torch", _make_way)
