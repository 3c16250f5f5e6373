"""A search for faster kernels of one comprehension: its slowest units first, each until its share of the time is up."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import pyopencl as cl
import torch

from syncscope.errors import UserError
from syncscope.kernels.comprehension import on_ocl, schedules, tuned
from syncscope.kernels.comprehension.explain import seconds as measured
from syncscope.kernels.comprehension.explain import whole
from syncscope.kernels.comprehension.nests import Schedule
from syncscope.kernels.comprehension.products import Product
from syncscope.kernels.device import is_gpu
from syncscope.kernels.generate import run as generated
from syncscope.kernels.tuning import search as products
from syncscope.kernels.tuning import store

_CLOSE = 1e-4  # of the largest element: how far a schedule's results may be from the default's
_BETTER = 0.97  # of the default's time, below which a schedule is worth keeping


def tune(made: Any, args: tuple[Any, ...], budget: float, quiet: bool) -> str:
    """Searches, keeps what is faster, and says for each unit how many times as fast it is now."""
    found = made.made(args)
    if found.plan is None:
        raise UserError(f"{made.function.name} has no kernels for these arguments", "tune it with tensors on ocl")
    plan: on_ocl.Plan = found.plan
    known = dict(zip(found.names, args, strict=True))
    units = whole(plan, known)
    before = {id(ready): measured(ready, known) for ready in units}
    total = sum(before.values())
    begin = perf_counter()
    said = {}
    try:
        for i, ready in sorted(enumerate(units), key=lambda x: -before[id(x[1])]):
            left = budget - (perf_counter() - begin)
            share = min(left, max(0.5, budget * before[id(ready)] / total))
            if left <= 0:
                break
            if not quiet and sys.stderr.isatty():
                print(f"\r{perf_counter() - begin:4.0f} of {budget:.0f} s: {ready.kernel:40}", end="", file=sys.stderr)
            said[i] = _unit(ready, plan, found.strides(args), known, before[id(ready)], perf_counter() + share)
    except KeyboardInterrupt:
        pass  # what was kept is kept
    finally:
        if not quiet and sys.stderr.isatty():
            print(file=sys.stderr)
        generated.plan.cache_clear()
        made.forget()
    return "\n".join(f"{said.get(i, 1.0):5.2f} x  {ready.kernel}" for i, ready in enumerate(units))


def _unit(
    ready: on_ocl.Ready, plan: on_ocl.Plan, strides: dict[str, tuple[int, ...]], known: dict[str, Any], default: float,
    end: float,
) -> float:  # fmt: skip
    """How many times as fast a unit became."""
    if isinstance(ready.unit, Product):
        if not is_gpu or ready.contraction is None:
            return 1.0
        plain = replace(ready.contraction, bias=None, then="x")
        best = products.search(plain, end - perf_counter(), ready.unit.step.dtype)
        if best is None or best.gain * _BETTER < 1:
            return 1.0
        store.keep([best.row])
        return best.gain
    if any(not s.sets for s in ready.unit.steps):
        return 1.0
    targets = sorted(ready.unit.stored)
    expected = {name: known[name].clone() for name in targets}
    times: dict[Schedule, float] = {}
    name = on_ocl.nest_class(ready.unit, plan.program, strides)
    best_time = default
    try:
        for schedule in _candidates(ready, times):
            if perf_counter() > end:
                break
            try:
                times[schedule] = measured(on_ocl.nest(ready.unit, plan.program, strides, schedule), known, best_time)
            except cl.Error:
                times[schedule] = float("inf")
                continue
            if times[schedule] < best_time * _BETTER and _same(known, expected):
                best_time = times[schedule]
                tuned.keep({name: schedule})
    finally:
        ready.enqueue(known)
    return default / best_time


def _candidates(ready: on_ocl.Ready, times: dict[Schedule, float]) -> Iterator[Schedule]:
    """Some at random, then what differs in one number from the best three, none twice."""
    assert not isinstance(ready.unit, Product)
    everything = list(schedules.every(ready.unit, is_gpu))
    chance = random.Random(0)
    chance.shuffle(everything)
    yield from everything[:16]
    while True:
        best = sorted(times, key=lambda s: times[s])[:3]
        near = [s for s in everything if s not in times and any(_apart(s, b) == 1 for b in best)]
        if not near:
            return
        yield near[0]


def _apart(a: Schedule, b: Schedule) -> int:
    names = ("group", "deep", "along", "ahead", "each")
    return sum(getattr(a, n) != getattr(b, n) for n in names)


def _same(known: dict[str, Any], expected: dict[str, torch.Tensor]) -> bool:
    """Whether a schedule's results are those of the default, up to the order of sums."""
    for name, right in expected.items():
        a, b = known[name].cpu().double(), right.cpu().double()
        scale = float(b[b.isfinite()].abs().max()) if bool(b.isfinite().any()) else 1.0
        if not torch.allclose(a, b, rtol=_CLOSE, atol=_CLOSE * max(scale, 1e-30), equal_nan=True):
            return False
    return True
