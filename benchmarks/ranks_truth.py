"""What `syncscope ranks` says of recorded jobs, beside what events of their devices measured.

    python benchmarks/ranks_truth.py FOLDER

FOLDER holds jobs of four GPUs in a grid of two by two: REGIME-VARIANT below `torch-cycle1`, `torch-cycle2` and `syncscope`, one
recording a rank, and `facts/RECORDER/JOB-rankN.json`: of each step, when the rank's compute stream reached each collective and
when the step was over, ns of one clock; `none` are steps without a recorder. In `reads` rank 1 reads a number in each step, in
`sleeps` rank 2's host sleeps, in `both` both, in `heavy` rank 3 computes more; `even` has no such delay.

*step*: a step of the job is told within 5 % of the mean of its own steps (without those over 1.5 times the median). *rank*: who
is told to hold others up most did so, or at least two thirds as much as who did most. *line*: the line of the delay is told, in
recordings that know lines. *ms*: what a delay costs, told within 20 % or 0.3 ms of the difference that it makes without a
recorder; under one, which slows hosts down, it may cost another.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from syncscope import kineto
from syncscope.analysis.job import JobReport, job
from syncscope.analysis.rank import rank_of

Steps = list[list[dict[str, Any]]]  # of each rank
RECORDED = {
    "torch-cycle1": ("torch", range(2, 5)),
    "torch-cycle2": ("torch", range(7, 10)),
    "syncscope": ("syncscope", range(2, 10)),
}
ALONE = ("none", range(5, 60))
ROWS, COLUMNS = ((0, 1), (2, 3)), ((0, 2), (1, 3))
READ, SLEEP, HEAVY = ("read", 1), ("sleep", 2), ("heavy", 3)  # what delays, and which rank
DELAYS = {"even": (), "reads": (READ,), "sleeps": (SLEEP,), "both": (READ, SLEEP), "heavy": (HEAVY,)}
WITHOUT = {("both", READ): "sleeps", ("both", SLEEP): "reads"}  # the variant that lacks only this delay; else `even`
LINES = {READ: (":106",), SLEEP: (":95", "before :96"), HEAVY: (":102",)}  # of the program; before a line that launches
NEAR, PART = 0.3, 0.2  # ms, or so much of the truth: what a delay costs is told well
STEP, LONG, AKIN = 0.05, 1.5, 2 / 3  # of a step, times the median one, of who holds up most


def facts(folder: Path, recorder: str, name: str) -> Steps:
    return [json.loads((folder / "facts" / recorder / f"{name}-rank{r}.json").read_text())["steps"] for r in range(4)]


def lengths(found: Steps, steps: Sequence[int]) -> list[float]:
    """How long each step of the job took, ms: until the last rank had done it."""
    over = [max(rank[n]["ended"] for rank in found) for n in (steps[0] - 1, *steps)]
    return [(b - a) / 1e6 for a, b in pairwise(over)]


def held_up(found: Steps, steps: Sequence[int]) -> Counter[int]:
    """How long each rank held its partners up: in its row, and at the end of the backward pass in its column."""
    owed = Counter[int]()
    for pairs, chosen in ((ROWS, slice(None)), (COLUMNS, slice(-1, None))):
        for a, b in pairs:
            for n in steps:
                marks = (
                    [m for m in found[r][n]["marks"] if (m[0] == "average") == (pairs is COLUMNS)][chosen]
                    for r in (a, b)
                )
                for (_, one, _), (_, other, _) in zip(*marks, strict=True):
                    owed[a if one > other else b] += abs(one - other)
    return owed


def cost(folder: Path, regime: str, variant: str, delay: tuple[str, int]) -> float:
    """What a delay costs a step without a recorder, ms."""
    recorder, steps = ALONE
    with_it, without = (
        mean(lengths(facts(folder, recorder, f"{regime}-{one}"), steps))
        for one in (variant, WITHOUT.get((variant, delay), "even"))
    )
    return with_it - without


def told_cost(found: JobReport, delay: tuple[str, int]) -> float:
    """What is told of it, ms: the price of the line that reads, what others gain with a rank on time."""
    if delay == READ:
        return sum(line.price.alone for line in found.lines if line.op == "item" and line.price) / 1e6
    return (found.ranks[delay[1]].on_time or 0.0) / 1e6


def told_line(found: JobReport, delay: tuple[str, int]) -> bool:
    if delay == READ:
        return any(line.op == "item" and str(line.place).endswith(LINES[READ]) for line in found.lines)
    first = found.ranks[delay[1]].lines[:1]
    return any(f"{'before ' * one.before}:{one.short.rpartition(':')[2]}" in LINES[delay] for one in first)


def near(told: float, true: float) -> bool:
    return abs(told - true) <= max(NEAR, PART * abs(true))


def judged(folder: Path, kind: str, name: str) -> Iterator[tuple[str, bool, str]]:
    """What was asked of a recording, whether it is right, and the figures: told, then true."""
    recorder, steps = RECORDED[kind]
    files = [
        path if path.is_file() else next(path.rglob("*.json.gz")) for path in sorted((folder / kind / name).iterdir())
    ]
    found = job([rank_of(kineto.read(path), number) for number, path in enumerate(files)])
    true = facts(folder, recorder, name)
    own = lengths(true, steps)
    step = mean(one for one in own if one <= LONG * median(own))
    yield "step", abs(found.step / 1e6 - step) <= STEP * step, f"{found.step / 1e6:.2f} {step:.2f}"
    owed, slow = held_up(true, steps), max(found.ranks, key=lambda rank: rank.imposed).number
    most, longest = owed.most_common(1)[0]
    yield "rank", owed[slow] >= AKIN * longest, f"{slow} {most}"
    regime, variant = name.split("-")
    for delay in DELAYS[variant]:
        said, really = told_cost(found, delay), cost(folder, regime, variant, delay)
        if kind == "syncscope" and near(0.0, really) is False:
            yield "line", told_line(found, delay), delay[0]
        yield "ms", near(said, really), f"{delay[0]} {said:.2f} {really:.2f}"


def main(say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    right: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for kind in RECORDED:
        for path in sorted((folder / kind).iterdir()):
            asked = list(judged(folder, kind, path.name))
            for what, fine, _ in asked:
                right[kind, what].append(fine)
            told = ", ".join(f"{what} {figures}{'' if fine else ' WRONG'}" for what, fine, figures in asked)
            say(f"{kind:12} {path.name:13} {told}")
    for what in ("step", "rank", "line", "ms"):
        each = {kind: of for kind in RECORDED if (of := right[kind, what])}
        parts = ", ".join(f"{kind} {sum(of)} of {len(of)}" for kind, of in each.items())
        say(f"{what:5} right: {sum(map(sum, each.values()))} of {sum(map(len, each.values()))} ({parts})")


if __name__ == "__main__":
    main()
