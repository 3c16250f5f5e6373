"""Every OpenCL command of this process, whoever enqueues it, by hooks in the vendors' dispatch tables."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from syncscope import opencl_driver
from syncscope.model.trace import DEVICE
from syncscope.tracers import record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.lines import library as lines
from syncscope.tracers.opencl import compiled, dispatch
from syncscope.tracers.opencl.abi import table_of
from syncscope.tracers.opencl.records import PATIENCE, add_records
from syncscope.tracers.python_events import PythonEvents, add_rows
from syncscope.tracers.sources import BAD, GOOD, WARN, Item, Source

FULL = "no room on its disk"
TRIED = 64  # commands that a device is tried with


class OpenCL(Source):
    """From `start` to `stop` everything goes into a file, which `add` turns into events."""

    def __init__(self) -> None:
        self._file: record_file.RecordFile | None = None
        self._contents: record_file.Contents | None = None
        self._notes: list[str] = []
        self._running = False

    @property
    def files(self) -> Sequence[Path]:
        """The hook's file, if there is a hook."""
        return (self._file.path,) if self._file else ()

    @classmethod
    def recovered(cls, contents: record_file.Contents) -> OpenCL:
        """What the hook had written."""
        source = cls()
        source._contents = contents
        return source

    def start(self, events: PythonEvents) -> None:
        """Hooks the vendors that are there and begins to record."""
        library = compiled.library()
        if library is None:
            self._notes.append(compiled.why_not())
            return
        if compiled.why_not():
            self._notes.append(
                f"{compiled.why_not()}: recorded through ctypes, some microseconds a call, kernels and copies only"
            )
        file = record_file.RecordFile(
            "opencl", events.folder, window=record_file.WINDOW, functions=compiled.functions()
        )
        library.ask_line(lines.asked())
        if failed := library.start(file.handle, record_file.HEADER, compiled.cycles_are_time()):
            file.remove()
            raise record_file.no_room(events.folder, os.strerror(failed))
        self._file, self._running = file, True
        dispatch.tables.install()

    @property
    def stopped(self) -> str:
        """Why the hook writes nothing more."""
        return FULL if self._running and compiled.counts()[2] else ""

    def remove(self) -> None:
        """Takes the hook's file away."""
        if self._file is not None:
            self._file.remove()

    def settle(self) -> None:
        """Waits for what the device still works on, and goes on recording."""
        library = compiled.library()
        if library is not None and self._running:
            library.settle(PATIENCE)

    def stop(self) -> None:
        """Waits for what the device still works on, and gives the tables back."""
        library = compiled.library()
        if library is None or not self._running or self._file is None:
            return
        left = library.stop(PATIENCE)
        dispatch.tables.uninstall()
        self._file.close()
        self._running = False
        self._notes += lost_in_words(left, *compiled.counts()[2:6])

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Calls, the device's work and the operators that are recorded in C; devices and their clocks for the meta."""
        found = self._contents or (self._file.read() if self._file else None)
        if found is None:
            return {"notes": self._notes}
        add_rows(builder, found, origin)
        facts = add_records(builder, found.records, found.header["functions"], origin, found.header["pid"])
        return facts | {"notes": self._notes + facts["notes"]}

    @classmethod
    def describe(cls) -> Iterator[Item]:
        """The hook, then each device, tried."""
        yield _hook()
        if importlib.util.find_spec("pyopencl") is None:
            yield Item(
                "OpenCL", WARN, "pyopencl is not installed", 'pip install "syncscope[opencl]" brings it, and a driver'
            )
            return
        import pyopencl as cl

        for path in dispatch.loaders():
            yield Item("OpenCL loader", GOOD, path)
        try:
            platforms = cl.get_platforms()
        except cl.Error as error:
            none = f"no platform: {error}", 'pip install "pyopencl[pocl]", or your GPU\'s driver'
            yield Item("OpenCL", BAD, *(opencl_driver.unnamed(()) or none))
            return
        if lost := opencl_driver.unnamed(found.name for found in platforms):
            yield Item("OpenCL driver", WARN, *lost)
        tables = {table_of(h) for loader in dispatch.loaders() for h in dispatch.platforms(loader)}
        yield Item("OpenCL platforms", GOOD, f"{len(platforms)}, with {len(tables)} dispatch tables to hook")
        for number, found in enumerate(platforms):
            for device in found.get_devices():
                yield _device(number, found, device)


SOURCE = OpenCL


def lost_in_words(left: int, disk: int, ring: int, refused: int, full: int) -> list[str]:
    """What was lost, for people."""
    said = {
        f"{left} commands had not ended when the recording did: their device times are missing": left,
        f"{disk} records of OpenCL were lost: no room on the disk of the recording": disk,
        f"{ring} device times were lost: the device was more than 65,536 commands behind": ring,
        f"{refused} device times were lost: the driver gave none for the command": refused,
        f"{full} queues or kernels could not be remembered: more than 8,192 were alive": full,
    }
    return [words for words, count in said.items() if count]


def _hook() -> Item:
    library = compiled.library()
    if library is None:
        return Item("OpenCL hook", BAD, f"{compiled.why_not()}: OpenCL calls are not seen, lines are")
    if compiled.why_not():
        said = f"{compiled.why_not()}: ctypes, some microseconds a call, kernels and copies only"
        return Item("OpenCL hook", WARN, said, "install a C compiler (gcc or clang) and run again")
    clock = "cycle counter" if compiled.cycles_are_time() else "clock_gettime"
    return Item("OpenCL hook", GOOD, f"native, {library._name}, times by {clock}")


def _device(number: int, platform: Any, device: Any) -> Item:
    """A short recording of this device, by this source alone."""
    import pyopencl as cl

    what = f"OpenCL device {number}"
    name = f"{device.name.strip()}, {platform.name} ({platform.version.strip()})"
    if compiled.library() is None:
        return Item(what, WARN, name)
    events, source, builder = PythonEvents(), OpenCL(), Builder()
    try:
        source.start(events)
        try:
            context = cl.Context([device])
            queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
            for _ in range(TRIED):
                cl.enqueue_fill_buffer(queue, buffer, b"\0\0\0\0", 0, 4096).wait()
            queue.finish()
        finally:
            source.stop()
        facts = source.add(builder, events.began)
    finally:
        events.close()
        events.remove()
        source.remove()
    if not facts.get("clocks"):
        return Item(what, BAD, f"{name}: the hook saw nothing", "a loader that is linked statically cannot be hooked")
    clock = next(iter(facts["clocks"].values()))
    timed = int(np.isin(builder.trace().kind, DEVICE).sum())
    if clock["source"] == "none" or timed < TRIED:
        said = f"{name}: host times only; {'; '.join(facts['notes']) or 'it gives no device times'}"
        return Item(what, WARN, said)
    said = f"{name}: hooked; its clock is known to {clock['uncertainty_ns'] / 1000:.2g} us ({clock['source']})"
    return Item(what, GOOD, said, traceable=True)
