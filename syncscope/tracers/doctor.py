"""What `syncscope doctor` tells: what is here to trace, with what, how exactly, and what would be missed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator

from syncscope import native
from syncscope.tracers.hooks import methods
from syncscope.tracers.lines import library as lines
from syncscope.tracers.process_recording import known_sources
from syncscope.tracers.sources import GOOD, WARN, Item


def survey() -> Iterator[Item]:
    """Everything, each item as soon as it is known: what each source says of itself, and what opens the traces."""
    yield Item("python", GOOD, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for source in known_sources().values():
        yield from source.describe()
    in_part = native.why_not(methods.SOURCE)
    hint = "install a C compiler and Python's headers (python3-dev), and run again"
    if in_part:
        lost = "`x[mask] = y` has no name of its own, and a dry run hears no nonzero, mask or `torch.equal`"
        yield Item("torch's operators", WARN, f"heard in part, {lost}: {in_part}", hint)
    else:
        yield Item("torch's operators", GOOD, "heard in C")
    why = lines.why_not()
    yield Item("lines of launches", WARN, f"none: {why}", hint) if why else Item("lines of launches", GOOD, "read in C")
    yield from _viewers()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


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
    yield "lines inside torch.compile's own code: a sync there has the line of the call"
    if sys.platform != "linux":
        yield f"OpenCL commands on {sys.platform}: the hook is for Linux"
    if os.environ.get("OPENCL_LAYERS"):
        yield "what a layer (OPENCL_LAYERS) does between the program and the driver is counted as the program's"
