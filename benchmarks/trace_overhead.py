"""What tracing costs, as ratios of one run: each mode beside the untraced step, in turn, many times.

    python benchmarks/trace_overhead.py            everything; about three minutes
    python benchmarks/trace_overhead.py hook       the native hook alone: ns a call, memory over ten million events

A figure is the median over the repeats, with the quartiles. Times are processor time of the process, so that other programs
do not count; the hook's are of its thread.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import importlib
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

import syncscope
from syncscope.tracers import record_file
from syncscope.tracers.opencl import compiled
from syncscope.tracers.opencl.dispatch import tables
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.sources.opencl import OpenCL

FAKE = Path(__file__).parents[1] / "tests" / "tracers" / "fake_icd.c"
REPEATS = 11
EVENTS = 10_000_000


def vendor(folder: str) -> Any:
    """A driver that does nothing, so that what is measured is the hook."""
    path = Path(folder) / "fake.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-w", str(FAKE), "-o", str(path)], check=True)
    library = c.CDLL(str(path))
    library.setup.restype = c.c_void_p
    library.enqueue.restype = library.blocking_read.restype = c.c_double
    return library


def hook(console: Console) -> None:
    if compiled.library() is None:
        console.print(f"no native hook here: {compiled.why_not()}")
        return
    table = Table("native hook", "ns a call without", "with", "added", title="The hook, another Python thread busy")
    over = threading.Event()
    busy = threading.Thread(target=lambda: any(over.is_set() for _ in iter(int, 1)))
    busy.start()
    with tempfile.TemporaryDirectory() as folder:
        fake = vendor(folder)
        at = fake.setup(0)
        calls: dict[str, Callable[[], float]] = {
            "enqueue": lambda: fake.enqueue(20_000),
            "blocking read": lambda: fake.blocking_read(20_000),
        }
        plain = {name: [call() for _ in range(REPEATS)] for name, call in calls.items()}
        with syncscope.trace():
            tables.hook(at, "fake")
            hooked = {name: [call() for _ in range(REPEATS)] for name, call in calls.items()}
        over.set()
        busy.join()
        for name, before in plain.items():
            added = median(hooked[name]) - median(before)
            table.add_row(name, f"{median(before):.0f}", spread(hooked[name], 0), f"{added:.0f}")
        console.print(table)
        flat(console, fake, at)


def flat(console: Console, fake: Any, at: int) -> None:
    """Ten million events: memory before and after, and what was lost."""
    events, recording = PythonEvents(), OpenCL()
    recording.start(events)
    tables.hook(at, "fake")
    fake.enqueue(100_000)
    before = resident()
    while compiled.counts()[0] < EVENTS:
        fake.enqueue(100_000)
    grown = resident() - before
    recording.stop()
    events.close()
    (path,) = recording.files
    written, _, *lost, _ = compiled.counts()
    size = path.stat().st_size
    _, records = record_file.read(path)
    calls = int((records["type"] == record_file.CALL).sum())
    stamps = int((records["type"] == record_file.STAMP).sum())
    for file in (path, *events.files):
        file.unlink()
    console.print(
        f"{written:,} events: memory grew by {grown / 1e6:.1f} MB, {size / 1e6:.0f} MB on disk, {sum(lost)} lost, "
        f"{calls:,} calls and {stamps:,} device times read back\n"
    )


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def spread(values: list[float], digits: int = 3) -> str:
    low, _, high = quantiles(values, n=4)
    return f"{median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def compare(
    console: Console, title: str, step: Callable[[], None], modes: dict[str, Any], many: int, repeats: int
) -> None:
    """Times blocks of `many` steps, each beside an untraced one, before it and after it in turn."""
    for _ in range(3):
        step()

    def block(mode: Callable[[], Any]) -> float:
        with mode():
            step()
            start = time.process_time_ns()
            for _ in range(many):
                step()
            return (time.process_time_ns() - start) / many / 1e6

    table = Table("mode", "ms a step", "x untraced", title=title)
    for name, mode in {"untraced, again": contextlib.nullcontext, **modes}.items():
        pairs = []
        for turn in range(repeats):
            if turn % 2:
                traced, plain = block(mode), block(contextlib.nullcontext)
            else:
                plain, traced = block(contextlib.nullcontext), block(mode)
            pairs.append((plain, traced))
        table.add_row(name, f"{median(b for _, b in pairs):.3f}", spread([b / a for a, b in pairs]))
    console.print(table)


def small_operators(device: str) -> Callable[[], None]:
    """A step of about 200 small operators, forward, backward and update, that reads its loss once."""
    import torch

    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=False)
    inputs, target = torch.randn(8, 16).to(device), torch.randn(8, 1).to(device)

    def step() -> None:
        optimizer.zero_grad()
        loss = ((model(inputs) - target) * (model(inputs) - target)).mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def peers() -> dict[str, Any]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Through(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    activities = [torch.profiler.ProfilerActivity.CPU]
    return {
        "torch.profiler": lambda: torch.profiler.profile(activities=activities),
        "torch.profiler with stacks": lambda: torch.profiler.profile(activities=activities, with_stack=True),
        "TorchDispatchMode that passes through": Through,
    }


def segmentation() -> Callable[[], None]:
    """A step of the sample, as written."""
    import torch

    sys.path.insert(0, str(Path(__file__).parents[1] / "samples"))
    import segmentation as sample

    torch.manual_seed(0)
    model = sample.network().to("ocl")
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    images, labels = (t.to("ocl") for t in sample.crops(8, 64).tensors)

    def step() -> None:
        loss = sample.loss_as_written(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.ocl.synchronize()

    return step


def main() -> None:
    console = Console()
    hook(console)
    if "hook" in sys.argv[1:]:
        return
    import torch

    importlib.import_module("syncscope.kernels")  # before the first backward: the engine counts the devices then
    torch.set_num_threads(1)
    ours = {"syncscope.watch": syncscope.watch, "syncscope.trace": syncscope.trace}
    compare(console, "200 small operators on the CPU", small_operators("cpu"), {**ours, **peers()}, 200, REPEATS)
    dry = {"syncscope.watch(dry=True)": lambda: syncscope.watch(dry=True)}
    compare(console, "the same, every tensor followed", small_operators("cpu"), dry, 40, REPEATS)
    compare(console, "200 small operators on ocl", small_operators("ocl"), {**ours, **peers()}, 8, 61)
    compare(console, "the segmentation sample on ocl", segmentation(), ours, 3, 9)


if __name__ == "__main__":
    main()
