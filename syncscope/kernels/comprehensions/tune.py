"""A search for faster kernels of one comprehension: its slowest units first, each until its share of the time is up."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from time import perf_counter
from typing import TYPE_CHECKING

import pyopencl as cl
import torch

from syncscope.errors import UserError
from syncscope.kernels.comprehensions import on_ocl, schedules
from syncscope.kernels.comprehensions.dtypes import Argument
from syncscope.kernels.comprehensions.explain import seconds as measured
from syncscope.kernels.comprehensions.fuse import Nest
from syncscope.kernels.comprehensions.nests import Schedule
from syncscope.kernels.device import is_gpu
from syncscope.kernels.generate import run as generated
from syncscope.kernels.tuning import search as products
from syncscope.kernels.tuning import store

if TYPE_CHECKING:
    from syncscope.kernels.comprehensions.runner import Runner

_CLOSE = 1e-4  # of the largest element: how far a schedule's results may be from the default's
_BETTER = 0.97  # of the default's time, below which a schedule is worth keeping
_FIRST = 16  # schedules at random, before those near the best


def tune(made: Runner, args: Sequence[Argument], budget: float, quiet: bool) -> str:
    """Searches, keeps what is faster, and says for each unit how many times as fast it is now."""
    found = made.made(args)
    if found.plan is None:
        raise UserError(f"{made.function.name} has no kernels for these arguments", "tune it with tensors on ocl")
    plan: on_ocl.Plan = found.plan
    known = plan(dict(zip(made.names, args, strict=True)), keep=True)
    before = [measured(ready, known) for ready in plan.units]
    gains = [1.0] * len(before)
    begin = perf_counter()
    shown = not quiet and sys.stderr.isatty()
    try:
        for i in sorted(range(len(before)), key=lambda i: -before[i]):
            ready, spent = plan.units[i], perf_counter() - begin
            if spent >= budget:
                break
            if shown:
                print(f"\r{spent:4.0f} of {budget:.0f} s: {ready.kernel:40}", end="", file=sys.stderr)
            share = min(budget - spent, max(0.5, budget * before[i] / sum(before)))
            gains[i] = (
                _nest(ready, plan, known, before[i], share) if isinstance(ready.unit, Nest) else _product(ready, share)
            )
    except KeyboardInterrupt:
        pass  # what was kept is kept
    finally:
        if shown:
            print(file=sys.stderr)
        generated.plan.cache_clear()
        made.forget()
    return "\n".join(f"{gain:5.2f} x  {ready.kernel}" for gain, ready in zip(gains, plan.units, strict=True))


def _product(ready: on_ocl.Ready, share: float) -> float:
    """How many times as fast a product became."""
    if not is_gpu or ready.contraction is None or isinstance(ready.unit, Nest):
        return 1.0
    plain = replace(ready.contraction, bias=None, then="x")
    best = products.search(plain, share, ready.unit.step.dtype)
    if best is None or best.gain * _BETTER < 1:
        return 1.0
    store.keep([best.row])
    return best.gain


def _nest(ready: on_ocl.Ready, plan: on_ocl.Plan, known: dict[str, Argument], default: float, share: float) -> float:
    """How many times as fast a nest became."""
    nest, end = ready.unit, perf_counter() + share
    assert isinstance(nest, Nest)
    expected = {name: known[name].clone() for name in nest.writes}
    name = schedules.class_of(nest, plan.program.name, plan.strides)
    times: dict[Schedule, float] = {}
    best = default
    try:
        for schedule in _candidates(nest, times):
            if perf_counter() > end:
                break
            try:
                one = on_ocl.nest(nest, plan.program, plan.strides, schedule)
                times[schedule] = measured(one, known, best)
            except cl.Error:
                times[schedule] = float("inf")
            if times[schedule] < best * _BETTER and _same(known, expected):
                best = times[schedule]
                schedules.keep(name, schedule)
    finally:
        ready.enqueue(known)
    return default / best


def _candidates(nest: Nest, times: dict[Schedule, float]) -> Iterator[Schedule]:
    """Some at random, then what differs in one number from the best three, none twice."""
    everything = list(schedules.every(nest, is_gpu))
    random.Random(0).shuffle(everything)
    yield from everything[:_FIRST]
    while True:
        best = sorted(times, key=lambda s: times[s])[:3]
        near = (s for s in everything if s not in times and any(_apart(s, b) == 1 for b in best))
        one = next(near, None)
        if one is None:
            return
        yield one


def _apart(a: Schedule, b: Schedule) -> int:
    return sum(x != y for x, y in zip(astuple(a), astuple(b), strict=True))


def _same(known: dict[str, Argument], expected: dict[str, torch.Tensor]) -> bool:
    """Whether a schedule's results are those of the default, up to the order of sums."""
    for name, right in expected.items():
        a, b = known[name].cpu().double(), right.cpu().double()
        scale = float(b[b.isfinite()].abs().max()) if bool(b.isfinite().any()) else 1.0
        if not torch.allclose(a, b, rtol=_CLOSE, atol=_CLOSE * max(scale, 1e-30), equal_nan=True):
            return False
    return True
