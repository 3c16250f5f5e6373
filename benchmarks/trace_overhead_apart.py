"""What a recording weighs on a GPU, each way of recording in a process of its own: no way pays for what another leaves behind.

    python benchmarks/trace_overhead_apart.py [--ways "every step,trace() 200"] [--turns 9] [--seconds 3] [--json FILE]

Five loops (`training_loops.py`), each in a process for each way; some prepare at once, and one measures. There it takes turns
with nothing: a ratio is the time of a step, wall time, synchronised before both readings of the clock, by that of the untraced
steps right before and after. One way after the other is measured, and has the median of the turns of each loop, between which
they were, and the median of the loops. A process takes `--turns`, fewer (three at least) once it has measured for `--seconds`.

`trace()` chooses which steps it records, begins and ends its recordings meanwhile, and then only counts: over few steps that
weighs most, so `trace() 200` is the same over 200 steps, in two turns. Under "every step" all are recorded. Then what that
consists of: CUPTI's times of the device's work, these and the driver's calls, and what Python hears without CUPTI.
torch.profiler is "CUDA only" and "CPU + CUDA", A/A nothing beside nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from side_by_side import results, wait_for_turn
from trace_overhead_cuda import LEAVE, STEPS, bare, free, modes, synchronize, timed
from training_loops import LOOPS

MANY = 200  # steps, by which a recording that chooses its own has ended
LONG = f"trace() {MANY}"
WAYS = (
    "every step",
    LONG,
    "A/A",
    "CUDA only",
    "Python alone",
    "and calls",
    "device alone",
    "trace()",
    "watch",
    "CPU + CUDA",
)


def apart(loop: str, way: str, turns: int, seconds: float, count: int, device: torch.device) -> dict[str, Any]:
    """ms of an untraced step, and the ratio of each turn."""
    torch.manual_seed(0)
    step = next(make for make in LOOPS.values() if make.__name__ == loop)(device)
    mode = modes(device)["trace()" if way == LONG else way]
    count, turns, fewest = (MANY, 2, 1) if way == LONG else (count, turns, 3)
    for _ in range(5):
        step()
    synchronize(device)
    wait_for_turn()
    timed(step, mode, 2, device)  # libraries are loaded, C code is compiled
    plain, until = [bare(step, count, device)], time.monotonic() + seconds
    ratios: list[float] = []
    while len(ratios) < turns and (len(ratios) < fewest or time.monotonic() < until):
        taken, _ = timed(step, mode, count, device)
        if way in LEAVE:
            free(device)
        plain.append(bare(step, count, device))
        ratios.append(2 * taken / (plain[-1] + plain[-2]))
    return {"loop": loop, "way": way, "step_ms": median(plain) / 1e6, "ratios": ratios}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="that prepare at once")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device == "ocl":
        from syncscope import kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    if given.only:
        loop, way = given.only
        print(json.dumps(apart(loop, way, given.turns, given.seconds, given.steps, device)))
        return
    ways, loops = given.ways.split(","), [make.__name__ for make in LOOPS.values()]
    told = ["--device", given.device, "--turns", given.turns, "--seconds", given.seconds, "--steps", given.steps]
    pairs = [(way, loop) for way in ways for loop in loops]
    commands = [[sys.executable, __file__, *map(str, told), "--only", loop, way] for way, loop in pairs]
    found: list[dict[str, Any]] = []
    print(f"{'':14}" + "".join(f"{loop:>20}" for loop in loops) + f"{'median':>9}", flush=True)
    for (way, loop), one in zip(pairs, results(commands, given.at_once, limit=90), strict=True):
        if loop == loops[0]:
            print(f"{way:14}", end="", flush=True)
        if isinstance(one, str):
            print(f"{'failed':>20}", end="", flush=True)
            print(f"\n{way}, {loop}: {one}", file=sys.stderr, flush=True)
        else:
            found.append(one)
            ratios = one["ratios"]
            print(f"{f'{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})':>20}", end="", flush=True)
        if loop == loops[-1]:
            of = [median(one["ratios"]) for one in found if one["way"] == way]
            print(f"{median(of) if of else float('nan'):9.3f}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))
    lengths = [median([one["step_ms"] for one in found if one["loop"] == loop] or [float("nan")]) for loop in loops]
    print(f"{'ms of a step':14}" + "".join(f"{length:20.2f}" for length in lengths))


if __name__ == "__main__":
    main()
