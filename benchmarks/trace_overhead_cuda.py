"""What a recording weighs on a GPU, on five loops as people write them, beside torch.profiler and beside nothing.

    python benchmarks/trace_overhead_cuda.py [--turns N] [--steps N] [--columns A,B] [--loops C,D] [--json FILE]

Every column is measured in every turn, between steps with nothing; a figure is the median over the turns of the time of a step
(wall time, synchronised before both readings of the clock) by that of the untraced steps right before and after, for a host's
pace drifts. What torch.profiler leaves behind, the driver's profiling interface (CUPTI) among it, is taken away after its
columns, for untraced steps take longer with it. The column of nothing shows what one run differs from the next. What `trace()`
consists of has columns, too: CUPTI's times of kernels, copies and fills alone, which is the least that a recording of them can
weigh; these and the driver's calls; and everything that Python hears, without CUPTI. Then: how long
ending a recording takes, and the untraced step as the recorder measured it beside the truth of the same turns. At last, what
stays after a recording.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import torch
from training_loops import LOOPS, Step, gradients

import syncscope
from syncscope import api
from syncscope.tracers import process_recording
from syncscope.tracers.cupti import library
from syncscope.tracers.recording import Recording

STEPS = 20  # of a recording

Mode = Callable[[], contextlib.AbstractContextManager[Any]]
# columns that leave CUPTI attached
LEAVE = {"CUDA only", "with sync", "CPU + CUDA", "operators", "device alone", "and calls"}


@contextlib.contextmanager
def profiler(operators: bool, sync: bool, device: torch.device) -> Iterator[None]:
    """torch.profiler."""
    from torch._C._profiler import _ExperimentalConfig

    which = torch.profiler.ProfilerActivity
    found = [which.CPU] if operators or device.type == "cpu" else []
    found += [which.CUDA] if device.type == "cuda" else []
    config = _ExperimentalConfig(enable_cuda_sync_events=sync)
    with torch.profiler.profile(activities=found, experimental_config=config):
        yield


@contextlib.contextmanager
def cupti(calls: bool, device: torch.device) -> Iterator[None]:
    """What CUPTI tells of the device's work, and of the driver's calls as well, written down, and nothing else."""
    if device.type == "cpu" or library.library() is None:
        yield
        return
    with open("/dev/null", "wb") as file, mock.patch.object(library, "heard", library.heard if calls else dict):
        subscriber = library.start(file.fileno())
        try:
            yield
        finally:
            library.stop(subscriber, torch.cuda.synchronize)


@contextlib.contextmanager
def python_alone() -> Iterator[Recording]:
    """A recording without sources of events."""
    with mock.patch.object(process_recording, "known_sources", dict), syncscope.trace() as recording:
        yield recording


def free(device: torch.device) -> None:
    """Takes away what torch.profiler leaves: what the collector would free in some later step, and CUPTI."""
    gc.collect()
    if device.type == "cuda" and library.library() is not None:
        torch.cuda.synchronize()
        library.library().cuptiFinalize()


def modes(device: torch.device) -> dict[str, Mode]:
    """What is compared, by its column."""
    return {
        "A/A": contextlib.nullcontext,
        "watch": syncscope.watch,
        "CUDA only": lambda: profiler(False, False, device),
        "with sync": lambda: profiler(False, True, device),
        "CPU + CUDA": lambda: profiler(True, True, device),
        "trace()": syncscope.trace,
        "every step": lambda: syncscope.trace(whole=True),
        "device alone": lambda: cupti(False, device),
        "and calls": lambda: cupti(True, device),
        "Python alone": python_alone,
        "operators": lambda: syncscope.trace(operators=True),
    }


def synchronize(device: torch.device) -> None:
    """Waits for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def timed(step: Step, mode: Mode, count: int, device: torch.device) -> tuple[float, float]:
    """ns of a step under this mode, and of its ending."""
    with contextlib.ExitStack() as stack:
        recording = stack.enter_context(mode())
        mark = getattr(recording, "step", lambda: None)
        for _ in range(2):
            step()
            mark()
        synchronize(device)
        began = time.perf_counter_ns()
        for _ in range(count):
            step()
            mark()
        synchronize(device)
        taken = (time.perf_counter_ns() - began) / count
        ending = time.perf_counter_ns()
    return taken, float(time.perf_counter_ns() - ending)


def scheduled(step: Step, wait: int, count: int, file: Path | None) -> dict[str, Any]:
    """What a recording with a schedule says of its own weight: the trace's meta, and the step that the report is about."""
    with syncscope.trace(wait=wait, active=count) as recording:
        for _ in range(wait + count + (0 if wait else 12)):
            step()
            recording.step()
    if file is not None:
        recording.save(file)
    found = api.report(recording.trace)
    meta = recording.trace.meta
    return {
        "untraced": meta["untraced"],
        "traced": meta["traced"],
        "reported": found.saving_step or found.step,
        "fidelity": found.fidelity,
        "unexplained": found.unexplained,
        "clock": meta.get("clocks", {}).get("CUPTI"),
        "reads": len(found.reads),
        "without a line": sum(read.place is None for read in found.reads),
    }


def read_cost(device: torch.device) -> dict[str, float]:
    """us of one `.item()` of a number that is there already, by mode."""
    x, found = torch.ones((), device=device), {}
    known = modes(device)
    for name in ("nothing", "A/A", "watch", "CUDA only", "with sync", "trace()"):
        with known.get(name, contextlib.nullcontext)():
            times = []
            for _ in range(5):
                synchronize(device)
                began = time.perf_counter_ns()
                for _ in range(400):
                    x.item()
                times.append((time.perf_counter_ns() - began) / 400e3)
        found[name] = round(median(times), 2)
        if name in LEAVE:
            free(device)
    return found


def entering(times: int = 200) -> dict[str, float]:
    """us to enter and leave, once it was done before."""
    found = {}
    for name, make in {"watch": syncscope.watch, "forbid_syncs": lambda: syncscope.forbid_syncs(dry=False)}.items():
        taken = []
        for _ in range(times):
            began = time.perf_counter_ns()
            with make():  # type: ignore[operator]
                pass
            taken.append((time.perf_counter_ns() - began) / 1e3)
        found[name] = round(median(taken), 1)
    return found


def measured(
    make: Callable[[torch.device], Step],
    known: dict[str, Mode],
    turns: int,
    count: int,
    device: torch.device,
    file: Path | None = None,
) -> dict[str, Any]:
    """Everything of one loop."""
    torch.manual_seed(0)
    step = make(device)
    for _ in range(5):
        step()
    ratios: dict[str, list[float]] = {name: [] for name in known}
    ends: dict[str, list[float]] = {name: [] for name in known}
    names, truth = list(known), [bare(step, count, device)]
    for turn in range(turns):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            taken, ending = timed(step, known[name], count, device)
            if name in LEAVE:
                free(device)
            truth.append(bare(step, count, device))
            ratios[name].append(2 * taken / (truth[-1] + truth[-2]))
            ends[name].append(ending)
    own = []
    for wait, written in ((10, file), (0, None)):
        own.append(scheduled(step, wait, count, written))
        own[-1]["truth"] = (truth[-1] + (last := bare(step, count, device))) / 2  # the steps right before and after
        truth.append(last)
    return {
        "step_ms": median(truth) / 1e6,
        "steps_ms": [round(step / 1e6, 3) for step in truth],
        "ratio": {name: median(found) for name, found in ratios.items()},
        "lowest": {name: min(found) for name, found in ratios.items()},
        "highest": {name: max(found) for name, found in ratios.items()},
        "end_s": {name: median(ends[name]) / 1e9 for name in known},
        "end_worst_s": {name: max(ends[name]) / 1e9 for name in known},
        "own": own,
    }


def bare(step: Step, count: int, device: torch.device) -> float:
    """ns of a step under nothing."""
    return timed(step, contextlib.nullcontext, count, device)[0]


def staying(step: Step, turns: int, count: int, device: torch.device) -> dict[str, list[float]]:
    """ms of an untraced step before anything is recorded and after it."""
    known: dict[str, Mode] = {
        "before": contextlib.nullcontext,
        "after trace()": syncscope.trace,
        "after torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]),
    }
    found: dict[str, list[float]] = {name: [] for name in known}
    free(device)
    for _ in range(turns):
        for name, mode in known.items():
            with mode():
                for _ in range(3):
                    step()
            for _ in range(10):
                step()
            found[name].append(round(bare(step, count, device) / 1e6, 3))
        free(device)
    return found


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--loops", default=",".join(make.__name__ for make in LOOPS.values()))
    parser.add_argument("--columns", help="of the table, separated by commas; default: all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep a recording of each loop")
    given = parser.parse_args()
    device = torch.device(given.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: --device cpu shows how it goes")
    print(torch.cuda.get_device_name() if device.type == "cuda" else "CPU", torch.__version__)
    known = modes(device)
    if given.columns:
        known = {name: known[name] for name in given.columns.split(",")}
    found: dict[str, Any] = {}
    failed: list[str] = []
    gc.collect()
    gc.freeze()  # what is there already is not looked at again and again
    print("us of a read:", read_cost(device), " us to enter and leave:", entering(), flush=True)
    for name, make in LOOPS.items():
        if make.__name__ not in given.loops.split(","):
            continue
        began = time.perf_counter()
        file = given.save / f"{make.__name__}.json.gz" if given.save else None
        try:
            one = found[name] = measured(make, known, given.turns, given.steps, device, file)
        except Exception:  # one loop that fails is not to cost the others
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"\n{name}: {one['step_ms']:.2f} ms untraced ({time.perf_counter() - began:.0f} s)")
        spread = {
            mode: f"{ratio:.2f} ({one['lowest'][mode]:.2f}-{one['highest'][mode]:.2f})"
            for mode, ratio in one["ratio"].items()
        }
        print("  ratio      ", "  ".join(f"{mode} {text}" for mode, text in spread.items()))
        print("  ends in s  ", "  ".join(f"{mode} {end:.2f}" for mode, end in one["end_s"].items() if end > 0.005))
        for own, when in zip(one["own"], ("before", "after"), strict=True):
            untraced, traced = (
                {k: v / 1e6 for k, v in own[key].items() if k.endswith("_ns")} for key in ("untraced", "traced")
            )
            print(
                f"  its own     {when}: truth {own['truth'] / 1e6:.2f} ms, untraced {untraced['median_ns']:.2f} "
                f"({untraced['low_ns']:.2f} to {untraced['high_ns']:.2f}, {own['untraced']['steps']} steps), "
                f"traced {traced['median_ns']:.2f}, reported {(own['reported'] or 0) / 1e6:.2f}, "
                f"unexplained {own['unexplained']}, {own['reads']} reads, {own['without a line']} without a line, "
                f"clock {own['clock']}",
                flush=True,
            )
        if given.json:
            given.json.write_text(json.dumps(found, indent=1, default=str))
    if device.type == "cuda":
        print(
            "\nuntraced steps in ms, 24 gradient norms:",
            staying(gradients(device), given.turns, given.steps, device),
        )
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
