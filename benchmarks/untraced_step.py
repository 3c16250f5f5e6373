"""What makes the steps before a recording, which it is held against, longer than those of a program without syncscope.

    python benchmarks/untraced_step.py --device cuda skipped-updates tags-of-articles

Loops of `benchmarks/loops`, as written, in blocks of steps: each as a recording would have it, between two blocks of nothing,
as a ratio to the mean of those; the median of all rounds with its quartiles. `nothing` is how alike blocks of nothing are.
"""

from __future__ import annotations

import argparse
import gc
import random
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from prediction import LOOPS, loops_of

from syncscope.tracers.hooks import listening
from syncscope.tracers.hooks.listeners import Listener
from syncscope.tracers.session import Session
from syncscope.tracers.step_times import StepTimes

BLOCK = 0.04  # s that a block takes at least
NEVER = 10**6  # steps
Ways = dict[str, Callable[[], float]]


def ways_of(run: Callable[[bool], None], synchronize: Callable[[], object], count: int) -> Ways:
    """By name: s of a step, over so many."""

    def block(each: Callable[[], object] = lambda: None) -> float:
        for _ in range(3):
            run(True)
            each()
        synchronize()
        begin = perf_counter()
        for _ in range(count):
            run(True)
            each()
        synchronize()
        return (perf_counter() - begin) / count

    def collected() -> float:
        gc.enable()
        try:
            return block()
        finally:
            gc.disable()

    def hooked() -> float:
        with listening(Listener(step=lambda: None)):
            return block()

    def waiting() -> float:
        with Session(wait=NEVER, active=1) as session:
            return block(session.step)

    def as_measured() -> float:
        times = StepTimes(None)
        times.boundary()
        block(times.boundary)
        times.pause()
        facts = times.facts()
        assert facts is not None
        return facts["median_ns"] / 1e9

    def after_recording() -> float:
        with Session(wait=0, warmup=5, active=6) as session:
            for _ in range(11):
                run(True)
                session.step()
        return block()

    return {
        "nothing": block,
        "garbage collected": collected,
        "steps are found": hooked,
        "each step timed": lambda: block(StepTimes(None, apart=0).boundary),
        "timed together": lambda: block(StepTimes(None).boundary),
        "as it is measured": as_measured,
        "a session waits": waiting,
        "after a recording": after_recording,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="+", metavar="LOOP")
    options.add_argument("--device", default="cuda")
    options.add_argument("--seconds", type=float, default=10.0, help="for each loop")
    given = options.parse_args()
    import torch

    device = torch.device(given.device)
    synchronize = getattr(torch, device.type).synchronize
    folder = {file.stem.replace("_", "-"): file.parent for file in LOOPS.glob("*/*.py")}
    for name in given.names:
        run: Any = loops_of(folder[name])[name](torch, device)
        begin = perf_counter()
        for _ in range(20):
            run(True)
        count = max(10, round(BLOCK / max(1e-4, (perf_counter() - begin) / 20)))
        ways = ways_of(run, synchronize, count)
        ratios: dict[str, list[float]] = {way: [] for way in ways}
        gc.collect()
        gc.disable()
        before = ways["nothing"]()
        plain, begin = [before], perf_counter()
        while perf_counter() - begin < given.seconds or len(plain) < 3 * len(ways):
            for way in random.sample(list(ways), len(ways)):
                found, after = ways[way](), ways["nothing"]()
                ratios[way].append(found / ((before + after) / 2))
                plain.append(after)
                before = after
        gc.enable()
        print(
            f"{name}: {1e3 * median(plain):.2f} ms ({1e3 * min(plain):.2f} to {1e3 * max(plain):.2f}), {count} steps a block"
        )
        for way, found_ratios in ratios.items():
            low, middle, high = quantiles(found_ratios, n=4)
            print(f"  {way:18} {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)


if __name__ == "__main__":
    main()
