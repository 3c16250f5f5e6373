"""What noting the line of every launch costs.

    python benchmarks/lines_cost.py [--device cuda] [--turns 5]

First the ns that a launch asks for its line, below so many frames of torch or of a library, and while nobody records. Then, of
five loops each in a process of its own: ms a step, and its ratio while all of it is recorded, with lines and without, in turns
with nothing (the median of the turns; the lowest and the highest beside it).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import torch
from lines_of_launches import carried
from side_by_side import results, wait_for_turn
from trace_overhead_cuda import synchronize
from training_loops import LOOPS

import syncscope
from syncscope.model.trace import Kind
from syncscope.tracers.lines import library as lines


def cost(loop: str, turns: int, device: torch.device) -> dict[str, Any]:
    """ms of a step of one of training_loops.py, in turns with nothing: recorded, and recorded without lines."""
    step = next(make for make in LOOPS.values() if make.__name__ == loop)(device)
    for _ in range(5):
        step()
    synchronize(device)
    wait_for_turn()

    def timed(mark: Callable[[], None]) -> float:
        for _ in range(2):
            step()
            mark()
        synchronize(device)
        began = time.perf_counter_ns()
        for _ in range(20):
            step()
            mark()
        synchronize(device)
        return (time.perf_counter_ns() - began) / 20e6

    plain, found, calls = [timed(lambda: None)], {True: [], False: []}, 0  # type: ignore[var-annotated]
    for turn in range(2 * turns):
        noted = turn % 2 == 0
        way = contextlib.nullcontext() if noted else mock.patch.object(lines, "library", return_value=None)
        with way, syncscope.trace(whole=True) as recording:
            taken = timed(recording.step)
        plain.append(timed(lambda: None))
        found[noted].append(2 * taken / (plain[-1] + plain[-2]))
        calls = len(recording.trace.rows(Kind.CALL)) // 22
    return {"plain": median(plain), "lines": found[True], "without": found[False], "calls": calls}


LOOP = """
#include <stdint.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
double loop(uint64_t (*ask)(void), int times) {
  double began = now();
  for (int i = 0; i < times; i++) ask();
  return (now() - began) / times;
}
"""


def asking() -> None:
    """ns that it takes, below frames of torch and of a library, and while nobody records."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "loop.c").write_text(LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "loop.c", "-o", "loop.so"], cwd=folder, check=True)
        loop = ctypes.CDLL(f"{folder}/loop.so").loop
        handle = os.open(f"{folder}/lines", os.O_RDWR | os.O_CREAT)
    loop.restype, loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_int]

    def ask() -> float:
        best, asked = 1e9, lines.asked()
        for _ in range(7):
            best = min(best, loop(asked, 100_000))
        return best

    lines.start(handle)
    for whose in ("torch/module.py", "zoo/model.py"):
        names = {"ask": carried(ask)}
        exec(compile("def f(n): return f(n - 1) if n else ask()", f"/x/site-packages/{whose}", "exec"), names)
        found = {depth: round(names["f"](depth)) for depth in (0, 5, 20, 60)}
        print(f"ns to ask for the line, by the frames of {whose.partition('/')[0]} below it: {found}")
    lines.stop()
    os.close(handle)
    print(f"ns while nobody records: {ask():.1f}")


def spread(ratios: list[float]) -> str:
    """The median, and between which ends."""
    return f"{median(ratios):.3f} ({min(ratios):.2f}-{max(ratios):.2f})"


def costs(turns: int, device: str, at_once: int) -> None:
    """The table of what a recording weighs."""
    print(f"{'ms a step':16}{'nothing':>9}{'trace(whole=True)':>20}{'without lines':>20}{'calls':>7}{'us a call':>11}")
    names = [make.__name__ for make in LOOPS.values()]
    commands = [[sys.executable, __file__, "--loop", name, "--device", device, "--turns", str(turns)] for name in names]
    ratios = []
    for name, found in zip(names, results(commands, at_once, limit=90), strict=True):
        if isinstance(found, str):
            print(f"{name}: {found}", flush=True)
            continue
        noted, without = median(found["lines"]), median(found["without"])
        ratios.append(noted)
        print(
            f"{name:16}{found['plain']:9.3f}{spread(found['lines']):>20}{spread(found['without']):>20}{found['calls']:7}"
            f"{1e3 * (noted - without) * found['plain'] / max(1, found['calls']):11.3f}",
            flush=True,
        )
    print(f"trace(whole=True) beside nothing: {median(ratios):.3f} in the median" if ratios else "nothing was measured")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="that prepare at once")
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device == "ocl":
        from syncscope import kernels  # noqa: F401  registers the device
    if given.loop:
        print(json.dumps(cost(given.loop, given.turns, torch.device(given.device))))
        return
    asking()
    costs(given.turns, given.device, given.at_once)


if __name__ == "__main__":
    main()
