"""A search for better schedules: the most plausible of some at random, then neighbours of the best, until the time is up.

What is timed is the contraction itself on this device. A winner is only believed after its result was compared, at places
drawn at random, with the sum of products in double precision.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyopencl as cl
import torch

from syncscope.errors import UserError
from syncscope.kernels import programs, queue, storage, winograd
from syncscope.kernels.device import device
from syncscope.kernels.generate import gpu, run, space, tensor_cores
from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.convolutions import Geometry, backward_input, backward_weight, forward
from syncscope.kernels.generate.ir import AXES, Access, Contraction, Index, reach, simplified
from syncscope.kernels.tuning.problems import ALIGNED, problems

_RANGES = {
    "bm": (16, 256),
    "bn": (16, 256),
    "bk": (8, 32),
    "tm": (2, 16),
    "tn": (4, 16),
    "lanes": (1, 4),
    "split": (1, 256),
}
_PLACES = 256  # of a result that are compared with double precision
_TOLERANCE = 1e-5  # of the sum of absolute products; honest float32 stays two orders below
_LOOSE = 2e-3  # of TF32, where each factor is off by half of 2 ** -10 at most, and of halves, where the result is
_BETTER = 0.97  # of the default's time, in each of so many turns beside it, is what a winner takes
_TURNS = 3
_LEAST = 2e-3  # seconds that a measurement takes, so that the host's part of it is small


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: seconds of the best schedule and of the default one, and how many were tried."""

    said: str  # the problem for people
    problem: str  # its class
    schedule: Schedule
    seconds: float
    default: float
    tried: int
    interrupted: bool  # by Ctrl-C

    @property
    def gain(self) -> float:
        """How many times as fast as the default."""
        return self.default / self.seconds

    @property
    def row(self) -> tuple[str, Schedule, dict[str, float]]:
        """For the store."""
        return (
            self.problem,
            self.schedule,
            {"us": round(self.seconds * 1e6, 1), "default_us": round(self.default * 1e6, 1)},
        )


class Bench:
    """A contraction with operands on the device, ready to be timed."""

    def __init__(self, c: Contraction, dtype: torch.dtype = torch.float32, tf32: bool = False) -> None:
        self.c, self.dtype, self.tf32 = simplified(c), dtype, tf32
        sizes = [1 + max(reach(self.c, index)[1], 0) for index in (self.c.a.at, self.c.b.at, self.c.out)]
        generator = np.random.default_rng(0)
        drawn = [np.resize(generator.standard_normal(min(size, 1 << 20), np.float32), size) for size in sizes[:2]]
        given = [torch.from_numpy(x).to(dtype) for x in drawn]
        self.host = [x.to(torch.promote_types(dtype, torch.float32)).numpy() for x in given]
        self.a, self.b = (x.to(storage.device()) for x in given)
        self.out = storage.empty([sizes[2]], dtype)

    def compiles(self, schedule: Schedule) -> None:
        """Builds its kernels ahead; what does not build is found out by `seconds`."""
        with contextlib.suppress(cl.Error, ValueError):
            run.plan(self.c, self.dtype, ALIGNED, schedule, self.tf32)

    def seconds(self, schedule: Schedule, enough: float = float("inf")) -> float | None:
        """The best of three measurements, the first alone where it is much slower than `enough`; None if it does not run."""
        try:
            plan = run.plan(self.c, self.dtype, ALIGNED, schedule, self.tf32)
            times = 1
            plan(self.a, self.b, None, self.out)
            queue.finish()
            best = self._once(plan, 1)
            if best > 3 * enough:
                return best
            times = max(1, min(200, int(_LEAST / best)))
            return min(self._once(plan, times) for _ in range(3))
        except (cl.Error, ValueError):
            return None

    def _once(self, plan: run.Plan, times: int) -> float:
        begin = perf_counter()
        for _ in range(times):
            plan(self.a, self.b, None, self.out)
        queue.finish()
        return (perf_counter() - begin) / times

    def error(self, schedule: Schedule) -> float:
        """The largest deviation from double precision, as a share of the sum of absolute products."""
        run.plan(self.c, self.dtype, ALIGNED, schedule, self.tf32)(self.a, self.b, None, self.out)
        got = self.out.cpu().double().numpy()
        generator = np.random.default_rng(1)
        at = {axis: [generator.integers(0, size, _PLACES) for size in getattr(self.c, axis)] for axis in "zmn"}
        k = np.stack([x.ravel() for x in np.indices(self.c.k)], 0) if self.c.k else np.zeros((0, 1), int)
        a, b = (
            _elements(x, values.astype(np.float64), at, k)
            for x, values in zip((self.c.a, self.c.b), self.host, strict=True)
        )
        expected, scale = (a * b).sum(1), np.abs(a * b).sum(1)
        return float((np.abs(got[_places(self.c.out, at, None)[:, 0]] - expected) / (scale + 1e-30)).max())


def _places(index: Index, at: dict[str, list[np.ndarray]], k: np.ndarray | None) -> np.ndarray:
    """An index at each drawn place (rows) and each k (columns)."""
    rows = np.full(_PLACES, index.start)
    for axis, loops in at.items():
        for step, values in zip(getattr(index, axis), loops, strict=True):
            rows = rows + step * values
    columns = np.zeros(1, int) if k is None else np.asarray(index.k) @ k if len(index.k) else np.zeros(k.shape[1], int)
    return np.asarray(rows[:, None] + columns[None, :])


def _elements(access: Access, values: np.ndarray, at: dict[str, list[np.ndarray]], k: np.ndarray) -> np.ndarray:
    places = _places(access.at, at, k)
    valid = np.ones(places.shape, bool)
    for index, size in access.inside:
        bound = _places(index, at, k)
        valid &= (bound >= 0) & (bound < size)
    return np.where(valid, values[np.where(valid, places, 0)], 0.0)


def search(
    c: Contraction, seconds: float, dtype: torch.dtype = torch.float32, said: str = "", tf32: bool = False
) -> Found | None:
    """The best schedule that `seconds` of trying found and double precision confirmed; None where not even one ran right.

    Ctrl-C ends the search with what it has.
    """
    bench = Bench(c, dtype, tf32)
    c = gpu.packed(bench.c) or bench.c
    first = space.default(c, int(device.max_compute_units), ALIGNED, dtype, tf32)
    end = perf_counter() + seconds
    times: dict[Schedule, float] = {}
    interrupted = False
    try:
        for batch in _candidates(c, first, dtype, times):
            programs.side_by_side(bench.compiles, batch)
            for schedule in batch:
                if not times or perf_counter() < end:
                    taken = bench.seconds(schedule, min(times.values(), default=float("inf")))
                    times[schedule] = float("inf") if taken is None else taken
            if perf_counter() > end:
                break
    except KeyboardInterrupt:
        interrupted = True
    for schedule in sorted(times, key=lambda s: times[s]):
        if schedule != first:
            if not times[schedule] < _BETTER * times[first]:
                schedule = first
            else:
                turns = [(bench.seconds(schedule), bench.seconds(first)) for _ in range(_TURNS)]
                if not all(a is not None and b is not None and a < _BETTER * b for a, b in turns):
                    continue
        if times[schedule] < float("inf") and bench.error(schedule) < (
            _LOOSE if tf32 or dtype.itemsize == 2 else _TOLERANCE
        ):
            name = space.problem(c, ALIGNED, dtype, tf32)
            return Found(said, name, schedule, times[schedule], times[first], len(times), interrupted)
    return None


def _candidates(
    c: Contraction, first: Schedule, dtype: torch.dtype, times: dict[Schedule, float]
) -> Iterator[list[Schedule]]:
    """The default and the most plausible of two hundred at random, then neighbours of the six best; in batches, none twice."""
    everything = list(space.every(c, ALIGNED, dtype))
    chance = random.Random(0)
    chance.shuffle(everything)
    plausible = sorted(everything[:200], key=lambda s: space.cost(c, s, int(device.max_compute_units), dtype))
    start = [first, *(s for s in plausible[:24] if s != first)]
    yield from (start[i : i + programs.COMPILERS] for i in range(0, len(start), programs.COMPILERS))
    while True:
        best = sorted(times, key=lambda s: times[s])[:6]
        near = {s for b in best for s in _neighbours(b) if s not in times and space.legal(c, s, ALIGNED, dtype)}
        if not near:
            return
        yield chance.sample(sorted(near, key=repr), min(programs.COMPILERS, len(near)))


def _neighbours(s: Schedule) -> Iterator[Schedule]:
    """Schedules that differ in one number, by one step, or in who multiplies."""
    yield replace(s, cores=not s.cores, stages=2)
    yield from (replace(s, stages=s.stages + more) for more in (-1, 1) if 2 <= s.stages + more <= 5)
    for name, (least, most) in _RANGES.items():
        for value in (getattr(s, name) * 2, getattr(s, name) // 2):
            if least <= value <= most:
                yield replace(s, **{name: value})


def tune(seconds: float, each: float, only: str, seen: Callable[[float, str], None]) -> Iterator[Found]:
    """Searches class after class, those with the most arithmetic first, until the time is up or Ctrl-C is pressed.

    `seen` is told the seconds spent, and what is being looked at.
    """
    begin = perf_counter()
    classes: dict[str, tuple[str, Contraction, torch.dtype, bool]] = {}
    work: dict[str, float] = {}
    for said, c, dtype, tf32 in kinds():
        if only in said:
            c = simplified(c)
            name = space.problem(gpu.packed(c) or c, ALIGNED, dtype, tf32)
            classes.setdefault(name, (said, c, dtype, tf32))
            work[name] = work.get(name, 0.0) + math.prod(float(c.size(axis)) for axis in AXES)
    if not classes:
        raise UserError(f"no problem's description contains {only!r}", "try `product`, `convolution` or `to weight`")
    try:
        for name in sorted(classes, key=lambda x: -work[x]):
            said, c, dtype, tf32 = classes[name]
            spent = perf_counter() - begin
            if spent >= seconds:
                return
            seen(spent, said)
            best = search(c, min(each, seconds - spent), dtype, said, tf32)
            if best is not None:
                yield best
                if best.interrupted:
                    return
    except KeyboardInterrupt:
        return


def kinds() -> Iterator[tuple[str, Contraction, torch.dtype, bool]]:
    """The problems in float32's precision; where tensor cores serve also convolutions in TF32, as PyTorch makes them unless
    told not to, and all of them in half precision, as under autocast."""
    once, halves = tensor_cores.serve(torch.float32), tensor_cores.serve(torch.float16)
    for problem in problems():
        yield problem.said, problem.c, torch.float32, False
        if once and problem.convolution is not None:
            yield f"{problem.said}, in TF32", problem.made_in(torch.float32, True), torch.float32, True
        if halves and not problem.by_winograd:
            yield f"{problem.said}, in half precision", problem.made_in(torch.float16, False), torch.float16, False


def ways() -> Iterator[tuple[str, float]]:
    """For each pass of a 3 x 3 convolution, from how many channels Winograd's way is the faster one on this device."""
    for which in winograd.PASSES:
        least = float("inf")
        for channels in _CHANNELS:
            direct, other = (min(_seconds(call) for _ in range(_TURNS)) for call in _both_ways(which, channels))
            if other > _BETTER * direct:
                break
            least = channels
        yield f"winograd {which}", least


_CHANNELS = (256, 192, 128, 96, 64, 32)


def _both_ways(which: str, channels: int) -> tuple[Callable[[], object], ...]:
    """A pass made directly, and Winograd's way."""
    shape = (64, channels, 28, 28)
    g = Geometry(shape, (channels, channels, 3, 3), shape, (1, 1), (1, 1), (1, 1), 1)
    image, made, weight = (torch.rand(x).to(storage.device()) for x in (g.image, g.made, g.weight))
    if which == "conv_forward":
        plan = run.plan(forward(g, which, False), torch.float32, ALIGNED)
        return lambda: plan(weight, image, None, made), lambda: winograd.forward(g, image, weight, None, made)
    if which == "conv_backward_input":
        (contraction,) = backward_input(g, which, False)
        plan = run.plan(contraction, torch.float32, ALIGNED)
        return lambda: plan(weight, made, None, image), lambda: winograd.backward_input(g, made, weight, None, image)
    plan = run.plan(backward_weight(g, which), torch.float32, ALIGNED)
    return lambda: plan(made, image, None, weight), lambda: winograd.backward_weight(g, image, made, weight)


def _seconds(call: Callable[[], object]) -> float:
    call()
    queue.finish()
    begin = perf_counter()
    for _ in range(5):
        call()
    queue.finish()
    return (perf_counter() - begin) / 5
