"""What `syncscope doctor` tells: what is here to trace, with what, how exactly, and what would be missed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from syncscope.tracers import icd, native

GOOD, WARN, BAD = "good", "warn", "bad"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing looked at: how it is, and what to do about it."""

    what: str
    state: str
    said: str
    hint: str = ""


def survey() -> Iterator[Item]:
    """Everything, from the bottom up; each item as soon as it is known."""
    yield Item("python", GOOD, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _torch()
    yield from _native()
    yield from _opencl()
    yield from _viewers()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _torch() -> Iterator[Item]:
    version = _version("torch")
    if not version:
        yield Item("torch", WARN, "not installed: only plain OpenCL programs can be traced", "pip install torch")
        return
    import torch

    yield Item("torch", GOOD, version)
    if torch.cuda.is_available():
        kind = "ROCm" if torch.version.hip else "CUDA"
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        yield Item(kind, GOOD, f"{names}: traced through torch.profiler, lines by our own recorder")
    else:
        yield Item("CUDA, ROCm", WARN, "none here", "scripts that ask for cuda: syncscope run --device ocl script.py")


def _native() -> Iterator[Item]:
    library = native.library()
    if library is None:
        yield Item("OpenCL hook", BAD, f"{native.why_not()}: OpenCL calls are not seen, lines are")
    elif native.why_not():
        said = f"{native.why_not()}: ctypes, some microseconds a call, kernels and copies only"
        yield Item("OpenCL hook", WARN, said, "install a C compiler (gcc or clang) and run again")
    else:
        clock = "cycle counter" if native.cycles_are_time() else "clock_gettime"
        yield Item("OpenCL hook", GOOD, f"native, {library._name}, times by {clock}")


def _opencl() -> Iterator[Item]:
    if not _version("pyopencl"):
        yield Item(
            "OpenCL", WARN, "pyopencl is not installed", 'pip install "syncscope[opencl]" brings it, and a driver'
        )
        return
    import pyopencl as cl

    for path in icd.loaders():
        yield Item("OpenCL loader", GOOD, path)
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        yield Item("OpenCL", BAD, f"no platform: {error}", 'pip install "pyopencl[pocl]", or your GPU\'s driver')
        return
    tables = {icd.table_of(handle) for loader in icd.loaders() for handle in icd.platforms(loader)}
    yield Item("OpenCL platforms", GOOD, f"{len(platforms)}, with {len(tables)} dispatch tables to hook")
    for number, found in enumerate(platforms):
        for device in found.get_devices():
            yield _device(number, found, device)


def _device(number: int, found: Any, device: Any) -> Item:
    what = f"OpenCL device {number}"
    name = f"{device.name.strip()}, {found.name} ({found.version.strip()})"
    from syncscope.tracers.session import Session

    if native.library() is None:
        return Item(what, WARN, name)
    session = Session()
    with session:
        import pyopencl as cl

        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
        for _ in range(64):
            cl.enqueue_fill_buffer(queue, buffer, b"\0\0\0\0", 0, 4096).wait()
        queue.finish()
    clocks = session.trace.meta.get("clocks", {})
    notes = session.trace.meta.get("notes", [])
    if not clocks:
        return Item(what, BAD, f"{name}: the hook saw nothing", "a loader that is linked statically cannot be hooked")
    clock = next(iter(clocks.values()))
    said = f"{name}: hooked; its clock is known to {clock['uncertainty_ns'] / 1000:.2g} us ({clock['source']})"
    refused = [note for note in notes if "device time" in note]
    if clock["source"] == "none" or refused:
        return Item(what, WARN, f"{name}: host times only; {'; '.join(refused) or 'it gives no device times'}")
    return Item(what, GOOD, said)


def _viewers() -> Iterator[Item]:
    for package, use in (("tensorboard", "to look at traces"), ("xprof", "TensorBoard's tab `Profile`, works offline")):
        version = _version(package)
        if version:
            yield Item(package, GOOD, version)
        else:
            hint = 'pip install "syncscope[tensorboard]"' if package == "tensorboard" else "pip install xprof"
            yield Item(package, WARN, f"not installed: {use}", hint)


def missed() -> Iterator[str]:
    """What no tracer here would see, in words."""
    yield "programs linked to an OpenCL driver without a loader, and extension functions fetched by address"
    yield "processes that the program spawns: each is a program of its own; forked ones record nothing"
    yield "lines inside torch.compile's own code: a read there has the line of the call"
    if sys.platform != "linux":
        yield f"OpenCL commands on {sys.platform}: the hook is for Linux"
    if os.environ.get("OPENCL_LAYERS"):
        yield "what a layer (OPENCL_LAYERS) does between the program and the driver is counted as the program's"
