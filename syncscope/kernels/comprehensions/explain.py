"""What became of a comprehension: which statements are which kernel, over what, and how near to the device's limits each is."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from syncscope.kernels import queue
from syncscope.kernels.comprehensions.dtypes import Argument
from syncscope.kernels.comprehensions.expressions import Apply, reads, walk
from syncscope.kernels.comprehensions.on_ocl import Plan, Ready
from syncscope.kernels.comprehensions.products import Product
from syncscope.kernels.comprehensions.program import Program
from syncscope.kernels.device import info, is_gpu

if TYPE_CHECKING:
    from syncscope.kernels.comprehensions.runner import Runner

_LEAST = 2e-3  # seconds that a measurement takes, so that the host's part of it is small


def explain(made: Runner, args: Sequence[Argument]) -> str:
    """Ranges of all statements, then on `ocl` the kernels with what they move and compute, measured."""
    found = made.made(args)
    lines = []
    for step in found.program.steps:
        over = ", ".join(f"{n} {low}:{high}" for n, (low, high) in step.ranges.items())
        lines.append(f"{step.written}    [{over or 'once'}]")
    if found.plan is None:
        return "\n".join((f"{made.function.name}: by torch, a statement at a time", *lines))
    plan: Plan = found.plan
    flops, bandwidth = limits()
    known = plan(dict(zip(made.names, args, strict=True)), keep=True)
    times = [seconds(ready, known) for ready in plan.units]
    for ready, took in zip(plan.units, times, strict=True):
        moved, done = work(ready, plan.program)
        shares = {"arithmetic": done / took / flops, "memory": moved / took / bandwidth}
        bound = max(shares, key=lambda x: shares[x])
        said, shape = _described(ready)
        amounts = f"{moved / 1e6:.2f} MB, {done / 1e6:.2f} million operations"
        lines += [f"{ready.kernel}: {shape}", f"    {said}"]
        lines.append(f"    {took * 1e6:.0f} us, {amounts}: {shares[bound]:.0%} of what {bound} allows")
    head = f"{made.function.name} on {info().name}: {len(plan.units)} kernels, {sum(times) * 1e6:.0f} us"
    limit = f"a product's {flops / 1e12:.2f} TFLOPS and a copy's {bandwidth / 1e9:.0f} GB/s, measured here"
    return "\n".join((head, *lines, f"the limits are {limit}"))


def seconds(ready: Ready, known: dict[str, Argument], enough: float = math.inf) -> float:
    """Of a unit: the best of three measurements, or the first where it is much slower than `enough`."""
    run = functools.partial(ready.enqueue, known)
    run()
    best = _timed(run, 1)
    if best > 3 * enough:
        return best
    times = max(1, min(200, int(_LEAST / best)))
    return min(_timed(run, times) for _ in range(3))


def _timed(run: Callable[[], object], times: int) -> float:
    """Seconds of one run, of several that are waited for together."""
    queue.finish()
    begin = perf_counter()
    for _ in range(times):
        run()
    queue.finish()
    return (perf_counter() - begin) / times


@functools.cache
def limits() -> tuple[float, float]:
    """Operations in a second of a product of matrices, and bytes in a second of a copy; float32, measured."""
    side, count = (4096, 1 << 26) if is_gpu else (512, 1 << 22)
    a, x, y = torch.ones(side, side, device="ocl"), torch.ones(count, device="ocl"), torch.empty(count, device="ocl")
    runs: tuple[Callable[[], object], ...] = (lambda: a @ a, lambda: y.copy_(x))
    for run in runs:
        run()
    product, copy = (min(_timed(run, 3) for _ in range(3)) for run in runs)
    return 2.0 * side**3 / product, 8.0 * count / copy


def work(ready: Ready, program: Program) -> tuple[float, float]:
    """Bytes that a unit must move and operations that it makes."""
    unit = ready.unit
    sizes = {name: math.prod(shape) for name, shape in program.shapes.items()}
    moved: dict[str, int] = {}
    if isinstance(unit, Product):
        moved, done = {name: sizes[name] for name in unit.reads}, 2.0 * unit.step.count()
    else:
        done = 0.0
        for s in unit.steps:
            done += s.count() * (sum(isinstance(x, Apply) for x in walk(s.value)) + bool(s.reduced))
            for x in reads(s.value):
                if x.tensor not in unit.values | program.numbers:  # where data decides, no more than is asked for
                    moved[x.tensor] = min(sizes[x.tensor], moved.get(x.tensor, 0) + s.count())
    every = [*moved.items(), *((name, sizes[name]) for name in unit.writes)]
    return float(sum(n * program.dtypes[name].itemsize for name, n in every)), done


def _described(ready: Ready) -> tuple[str, str]:
    """The statements of a unit, and how it is laid out."""
    unit, s = ready.unit, ready.schedule
    if isinstance(unit, Product):
        return unit.step.written.partition(" where ")[0], "a product of the device's generator"
    assert s is not None
    inner = f", {unit.length} elements each" if unit.length > 1 else ""
    team = f", {s.deep} items a point" if s.deep > 1 else ""
    shares = f", in {unit.shares} shares" if unit.shares > 1 else ""
    said = "; ".join(dict.fromkeys(x.written.partition(" where ")[0] for x in unit.steps))
    kept = ", which keep what they read" if s.held else ""
    return said, f"{unit.count} points{inner}{shares}; groups of {s.group}{team}{kept}"
