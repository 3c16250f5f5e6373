"""What a recording weighs on a GPU, each way of recording in a process of its own: no way pays for what another leaves behind.

    python benchmarks/trace_overhead_apart.py [--ways "trace(),every step"] [--turns 7] [--steps 20] [--json FILE]

Five loops (`training_loops.py`), each in a process for each way; some prepare at once, and one measures. There it takes turns
with nothing: a ratio is the time of a step, wall time, synchronised before both readings of the clock, by that of the untraced
steps right before and after. The row of a loop has the median of its turns, and between which they were, the last row the
median of the loops. `trace()` chooses which steps it records; under "every step" all are. A/A is nothing beside nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

import torch
from side_by_side import results, wait_for_turn
from trace_overhead_cuda import STEPS, bare, free, modes, synchronize, timed
from training_loops import LOOPS

WAYS = ("A/A", "watch", "trace()", "every step", "CUDA only", "CPU + CUDA")


def apart(loop: str, way: str, turns: int, count: int, device: torch.device) -> dict[str, Any]:
    """ms of an untraced step, and the ratio of each turn."""
    torch.manual_seed(0)
    step = next(make for make in LOOPS.values() if make.__name__ == loop)(device)
    mode = modes(device)[way]
    for _ in range(5):
        step()
    synchronize(device)
    wait_for_turn()
    timed(step, mode, 2, device)  # libraries are loaded, C code is compiled
    plain, ratios = [bare(step, count, device)], []
    for _ in range(turns):
        taken, _ = timed(step, mode, count, device)
        if "CUDA" in way:
            free(device)
        plain.append(bare(step, count, device))
        ratios.append(2 * taken / (plain[-1] + plain[-2]))
    return {"loop": loop, "way": way, "step_ms": median(plain) / 1e6, "ratios": ratios}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="that prepare at once")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device == "ocl":
        from syncscope import kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    if given.only:
        print(json.dumps(apart(given.only[0], given.only[1], given.turns, given.steps, device)))
        return
    ways, loops = given.ways.split(","), [make.__name__ for make in LOOPS.values()]
    told = ["--device", given.device, "--turns", str(given.turns), "--steps", str(given.steps)]
    pairs = [(loop, way) for loop in loops for way in ways]
    commands = [[sys.executable, __file__, *told, "--only", *pair] for pair in pairs]
    found, rows = [], {loop: [""] * len(ways) for loop in loops}
    print(f"{'median of turns':16}{'step ms':>9}" + "".join(f"{way:>20}" for way in ways), flush=True)
    for (loop, way), one in zip(pairs, results(commands, given.at_once, limit=90), strict=True):
        if isinstance(one, str):
            print(f"{loop}, {way}: {one}", flush=True)
        else:
            found.append(one)
            ratios = one["ratios"]
            rows[loop][ways.index(way)] = f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        if way == ways[-1]:
            lengths = [one["step_ms"] for one in found if one["loop"] == loop]
            print(f"{loop:16}{median(lengths or [0.0]):9.2f}" + "".join(f"{row:>20}" for row in rows[loop]), flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))
    of = [[median(one["ratios"]) for one in found if one["way"] == way] for way in ways]
    print(f"{'median':25}" + "".join(f"{median(ratios or [0.0]):20.3f}" for ratios in of))


if __name__ == "__main__":
    main()
