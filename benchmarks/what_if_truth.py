"""What a recording says would help, beside what it did: the loops of `changed_loops`, each as written and changed for real.

    python benchmarks/what_if_truth.py [--device cuda] [--loops A,B] [--blocks 10] [--json FILE]

Each loop has a process of its own; some prepare at once, and one measures. There both versions are timed in turns (wall time of
some steps, synchronised before both readings of the clock; the median of the blocks), then that as written is recorded with
`syncscope.trace`, and the row of `what_if` that is about the change is read. A point is 1 % of the step as written.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from side_by_side import results, wait_for_turn

BLOCK = 0.06  # seconds of steps that are timed together, about


def measured(name: str, device_name: str, blocks: int) -> dict[str, Any]:
    """The figures of one loop, measured in this process."""
    import torch
    from changed_loops import LOOPS
    from changed_loops.steps import Step

    import syncscope

    if device_name == "ocl":
        importlib.import_module("syncscope.kernels")  # registers it
    device = torch.device(device_name)
    loop = LOOPS[name]

    def ready() -> None:
        torch.zeros(1, device=device).cpu()

    def timed(step: Step, steps: int) -> float:
        ready()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        ready()
        return (time.perf_counter() - begin) / steps

    versions = [loop.make(device, False), loop.make(device, True)]
    for step in versions:
        for _ in range(8):
            step()
    ready()
    wait_for_turn()
    steps = max(4, round(BLOCK / max(1e-6, timed(versions[0], 4))))
    found: list[list[float]] = [[], []]
    for block in range(2 * blocks):
        which = (block + block // 2) % 2  # A B B A A B B A: what drifts meets both
        found[which].append(timed(versions[which], steps))
    written, otherwise = (median(times) for times in found)
    with syncscope.trace(wait=24, warmup=2, active=20) as trace:
        for _ in range(24 + 2 + 20):
            versions[0]()
            trace.step()
        ready()
    report = trace.report(show=False)
    rows = [one for one in report.what_if if loop.row in one.name]
    about = max(rows, key=lambda one: one.saving, default=None)
    length = report.saving_step or report.step or 1.0
    said = None
    if rows and about is not None:
        several = rows if "step is one launch" in loop.row else [about]
        said = {key: sum(getattr(one, key) for one in several) / length for key in ("saving", "low", "high", "bound")}
    return {
        "loop": name,
        "changed": loop.change,
        "written_ms": 1e3 * written,
        "changed_ms": 1e3 * otherwise,
        "blocks_ms": [[round(1e3 * taken, 4) for taken in times] for times in found],
        "true": 1 - otherwise / written,
        "said": said,
        "recorded_ms": length / 1e6,
        "busy": report.device_busy,
        "rows": [(one.name, one.saving / length) for one in report.what_if],
        "host_known": report.by_line.host_known if report.by_line else None,
        "device_known": report.by_line.device_known if report.by_line else None,
        "verdict": report.verdict,
    }


def line(found: dict[str, Any]) -> str:
    """The figures of a loop as a row."""
    times = f"{found['written_ms']:8.2f} {found['changed_ms']:8.2f} {found['true']:7.1%}"
    head = f"{found['loop']:28} {found['changed']:18} {times}"
    said = found["said"]
    if said is None:
        return f"{head}   nothing said: {', '.join(name for name, _ in found['rows']) or found['verdict'][:60]}"
    holds = said["low"] <= found["true"] <= said["high"]
    return f"{head} {said['saving']:7.1%} {said['low']:7.1%} to {said['high']:6.1%}  {'holds' if holds else 'misses'}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--loops", default="", help="parts of their names, with commas")
    options.add_argument("--blocks", type=int, default=10)
    options.add_argument(
        "--limit", type=float, default=60.0, help="seconds that loops may take to prepare, and one to measure"
    )
    options.add_argument(
        "--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="loops that prepare at once"
    )
    options.add_argument("--json", type=Path)
    options.add_argument("--only", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.only:
        print(json.dumps(measured(chosen.only, chosen.device, chosen.blocks)))
        return
    from changed_loops import LOOPS

    wanted = [part for part in chosen.loops.split(",") if part]
    names = [name for name in LOOPS if not wanted or any(part in name for part in wanted)]
    told = ["--device", chosen.device, "--blocks", str(chosen.blocks)]
    commands = [[sys.executable, __file__, "--only", name, *told] for name in names]
    found = []
    print(f"{'loop':28} {'changed':18} {'written':>8} {'changed':>8} {'true':>7} {'said':>7} {'between':>17}")
    for name, one in zip(names, results(commands, chosen.at_once, chosen.limit), strict=True):
        if isinstance(one, str):
            print(f"{name:28} failed: {one[-300:]}", flush=True)
            continue
        found.append(one)
        print(line(one), flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(found, indent=1))
    said = [(one["said"]["saving"], one["true"], one["said"]) for one in found if one["said"]]
    if said:
        off = sorted(100 * abs(saving - true) for saving, true, _ in said)
        wrong, surely = (sum(told[key] > 0.01 and true < 0 for _, true, told in said) for key in ("saving", "low"))
        holds = sum(told["low"] <= true <= told["high"] for _, true, told in said)
        print(
            f"\n{len(said)} of {len(found)} said: off by {median(off):.1f} points in the median, {off[-1]:.1f} at the worst; "
            f"the interval holds {holds}; said to help and did not: {wrong}, surely so {surely}"
        )


if __name__ == "__main__":
    main()
