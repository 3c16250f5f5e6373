"""CUDA: what the driver was asked for and what its devices did, from CUPTI itself, which torch brings along.

torch.profiler is made of the same records, which it converts several times and keeps in memory: it costs more while it runs,
and seconds when it ends. Here they go into a file as the driver's buffers fill, on a thread of CUPTI's own. Where CUPTI is not
to be had (ROCm, no compiler, a profiler of the program's), and where operators of the CPU are wanted, `torch_profiler` records
instead.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from syncscope.tracers import record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.cupti import library
from syncscope.tracers.cupti.records import add_records
from syncscope.tracers.pinned import of_uploads
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.record_file import Contents
from syncscope.tracers.sources import Source
from syncscope.tracers.sources.torch_profiler import WITHOUT, serving, wanted

NAME = "cupti"
WARM = 8  # readings of both clocks at the start: the first take long
EVERY = 10_000_000  # ns between two later ones
REFUSED = "CUPTI is in use here, as it is once torch.profiler was used: this recording goes through it and weighs more"


class Cupti(Source):
    """A recording by CUPTI, from the moment that there is a device for it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._events: PythonEvents | None = None
        self._file: record_file.RecordFile | None = None
        self._running = False
        self._contents: Contents | None = None
        self._subscriber: Any = None
        self._hears_waits = False
        self._until = 0  # when the first record found no room on the disk, ns of CLOCK_MONOTONIC
        self._read = 0  # when both clocks were read last, ns of CLOCK_MONOTONIC

    @property
    def files(self) -> Sequence[Path]:
        """Where it goes, once it has begun."""
        return (self._file.path,) if self._file else ()

    @property
    def stopped(self) -> str:
        """Why nothing more is written."""
        return "no room on its disk" if self._running and library.lost_from() else ""

    def remove(self) -> None:
        """Takes its file away."""
        if self._file is not None:
            self._file.remove()

    @classmethod
    def recovered(cls, contents: Contents) -> Cupti:
        """What had been written."""
        source = cls()
        source._contents = contents
        return source

    def start(self, events: PythonEvents) -> None:
        """Begins where there is a device already."""
        self._events = events
        self.boundary()

    def boundary(self) -> None:
        """Begins once there is a device; then notes a moment on both clocks."""
        if self._running:
            if time.monotonic_ns() - self._read >= EVERY:
                self._moments(1)
            self._hears_waits = self._hears_waits or library.hear_waits()
        elif self._file is None and self._events is not None and not self._events.operators_wanted and wanted():
            self._begin(self._events.folder)

    def _begin(self, folder: Path | None) -> None:
        torch = sys.modules["torch"]
        if serving or torch.autograd._profiler_enabled() or library.library() is None or library.activities() is None:
            return
        file = record_file.RecordFile(NAME, folder)
        try:
            file.append(b"".join(_facts(torch)))
            if file.stopped:
                raise record_file.no_room(folder, file.stopped)
            self._subscriber = library.start(file.handle)
        except BaseException as failed:
            file.remove()
            if isinstance(failed, (library.RefusedError, AttributeError)):
                self._note(REFUSED)
                return  # torch.profiler may have more luck
            raise
        self._file, self._running = file, True
        serving.append(self)
        self.notes.append(WITHOUT)
        self._moments(WARM)

    def _moments(self, count: int) -> None:
        assert self._file is not None
        for _ in range(count):
            before = time.monotonic_ns()
            theirs = library.now()
            self._read = time.monotonic_ns()
            self._file.append(_record(record_file.CLOCK, t0=before, t1=self._read, a=theirs))

    def settle(self) -> None:
        """Has everything written that the devices were asked for."""
        if self._running and self._file is not None:
            self._synchronize()
            library.settle()
            self._contents = self._file.read()

    def stop(self) -> None:
        """Ends."""
        if self in serving:
            serving.remove(self)
        self._end()

    def _end(self) -> bool:
        if not self._running or self._file is None:
            return False
        self._synchronize()
        self._moments(1)
        lost, left = library.stop(self._subscriber, self._synchronize)
        self.lingers = not left
        if lost:
            self._until = library.lost_from()
            self.notes.append(f"{lost} events of CUDA were lost: no room on the disk")
        self._file.close()
        self._running = False
        self._contents = self._file.read()
        return True

    def _synchronize(self) -> None:
        """Waits for the device; where a kernel of the program's has failed, the program hears of it itself."""
        try:
            sys.modules["torch"]._C._cuda_synchronize()
        except RuntimeError as error:
            self._note(f"the device had failed when the recording ended: {str(error).partition(chr(10))[0]}")

    def _note(self, words: str) -> None:
        """Says it, once."""
        if words not in self.notes:
            self.notes.append(words)

    def give_way(self, _: Any) -> None:
        """The program starts a profiler of its own, and CUPTI tells one at a time."""
        if self._end():
            self.notes.append("the program started a profiler of its own: what the devices did after that is missing")

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds the events, on our clock; what belongs into the trace's meta."""
        if self._contents is None:
            return {"notes": self.notes}
        header, records = self._contents
        facts = add_records(builder, records, origin, header["pid"], self._until)
        ours = header["pid"] == os.getpid()
        uploads = of_uploads(builder.tables["names"], recording=self._running) if ours else {}
        return facts | uploads | {"notes": self.notes}


def _record(kind: int, **fields: int) -> bytes:
    row = np.zeros(1, record_file.RECORD)
    row["type"] = kind
    for word, value in fields.items():
        row[word] = value
    return row.tobytes()


def _facts(torch: Any) -> list[bytes]:
    """What the records' numbers mean, for a reader without CUPTI: the driver's calls, and the devices."""
    found: list[bytes] = []
    for number, name in library.heard().items():
        found += record_file.name_records(library.DRIVER << 16 | number, name.encode())
    for number in range(torch.cuda.device_count()):
        of = torch.cuda.get_device_properties(number)
        facts = {"id": number} | {
            word: value for word, own in FACTS.items() if (value := getattr(of, own, None)) is not None
        }
        found += record_file.name_records(DEVICES + number, json.dumps(facts).encode())
        found.append(_record(record_file.DEVICE, queue=number + 1, name=DEVICES + number))
    return found


DEVICES = 1 << 20  # numbers of what is known of them
FACTS = {  # Kineto's words for what torch knows of a device
    "name": "name",
    "totalGlobalMem": "total_memory",
    "computeMajor": "major",
    "computeMinor": "minor",
    "maxThreadsPerMultiprocessor": "max_threads_per_multi_processor",
    "regsPerMultiprocessor": "regs_per_multiprocessor",
    "warpSize": "warp_size",
    "sharedMemPerBlock": "shared_memory_per_block",
    "sharedMemPerMultiprocessor": "shared_memory_per_multiprocessor",
    "numSms": "multi_processor_count",
}


SOURCE = Cupti
