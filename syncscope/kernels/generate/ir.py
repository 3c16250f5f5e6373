"""What a contraction computes: loops on four axes, operands that are affine in them, and what is done with each sum.

    out(z, m, n) = then(alpha * sum over k of a(z, m, k) * b(z, k, n) + beta * bias(z, m, n))

A product of matrices has one loop on an axis; a convolution has several: its columns are images, rows and pixels. Where an
operand lies is a start and a step for every loop; what lies outside its bounds (the padding of an image) counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

AXES = "zmnk"
Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """`start` and, for each loop of an axis, what one step of it adds; an axis without steps adds nothing."""

    start: int = 0
    z: Ints = ()
    m: Ints = ()
    n: Ints = ()
    k: Ints = ()


@dataclass(frozen=True, slots=True)
class Access:
    """The place of an element, counted from its tensor's first; it is zero unless each bounded index is in its range."""

    at: Index
    inside: tuple[tuple[Index, int], ...] = ()  # an index, and the size it must stay below
    padded: bool = False  # whether its neighbours go on behind their end with zeros, up to a multiple of eight
    rounded: bool = False  # whether its floats have no more than TF32's eleven bits


@dataclass(frozen=True, slots=True)
class Contraction:
    """Loops by axis, outermost first; `then` is a C expression in `x`, or in `x` and the bias as `y`, and `name` is what
    a profiler shows."""

    name: str
    z: Ints
    m: Ints
    n: Ints
    k: Ints
    a: Access
    b: Access
    out: Index
    bias: Index | None = None
    then: str = "x"

    def size(self, axis: str) -> int:
        """Of an axis, all its loops together."""
        return math.prod(getattr(self, axis))


def simplified(c: Contraction) -> Contraction:
    """The same with fewer loops: none of size one, neighbours joined where every index allows it, and no bound that holds
    anyway."""
    c = _each_index(c, lambda index: Index(index.start, *(_steps(index, x, len(getattr(c, x))) for x in AXES)))
    c = replace(c, a=_without_idle_bounds(c, c.a), b=_without_idle_bounds(c, c.b))
    for axis in AXES:
        sizes = getattr(c, axis)
        steps = [getattr(index, axis) for index in _indexes(c)]
        kept: list[int] = []  # sizes
        columns: list[list[int]] = []  # one for each kept loop: its step in every index
        if 0 in sizes:
            sizes, steps = (0,), [(0,) for _ in steps]
        for i, size in enumerate(sizes):
            column = [s[i] for s in steps]
            if size == 1:
                continue
            if kept and columns[-1] == [size * step for step in column]:
                kept[-1] *= size
                columns[-1] = column
            else:
                kept.append(size)
                columns.append(column)
        rows = iter(range(len(steps)))
        c = _with_sizes(c, axis, tuple(kept))
        c = _each_index(c, lambda index: _taking(index, axis, columns, rows))  # noqa: B023 - used at once
    return c


def deepened(c: Contraction) -> Contraction:
    """The same with the loops of k that no bound depends on innermost, so that what is outside stays so for long."""
    bounds = [index.k for access in (c.a, c.b) for index, _ in access.inside]
    order = sorted(range(len(c.k)), key=lambda i: not any(steps[i] for steps in bounds))

    def moved(steps: Ints) -> Ints:
        return tuple(steps[i] for i in order)

    return _in_blocks(simplified(_each_index(replace(c, k=moved(c.k)), lambda index: replace(index, k=moved(index.k)))))


def moved_inside(c: Contraction, axis: str) -> Contraction:
    """The same with the outermost loop of an axis innermost."""

    def moved(steps: Ints) -> Ints:
        return (*steps[1:], *steps[:1])

    def changed(index: Index) -> Index:
        return Index(index.start, **{x: moved(steps) if x == axis else steps for x, steps in _of(index)})

    return _each_index(_with_sizes(c, axis, moved(getattr(c, axis))), changed)


def _of(index: Index) -> Iterator[tuple[str, Ints]]:
    return ((x, getattr(index, x)) for x in AXES)


_TOGETHER = 16  # steps of the innermost loop of k that are walked before the next tap


def _in_blocks(c: Contraction) -> Contraction:
    """The same with the other loops of k between blocks of the innermost: what neighbouring taps see of a few channels is
    nearly the same, and comes from the nearest cache. On an H100 3 x 3 convolutions in TF32 took up to 6 % less so."""
    if len(c.k) < 2 or c.k[-1] % _TOGETHER or c.k[-1] == _TOGETHER:
        return c

    def moved(steps: Ints) -> Ints:
        return (steps[-1] * _TOGETHER, *steps[:-1], steps[-1])

    sizes = (c.k[-1] // _TOGETHER, *c.k[:-1], _TOGETHER)
    return simplified(_each_index(replace(c, k=sizes), lambda index: replace(index, k=moved(index.k))))


def reach(c: Contraction, index: Index) -> tuple[int, int]:
    """The least and the largest value of an index over all loops."""
    low = high = index.start
    for axis in AXES:
        for size, step in zip(getattr(c, axis), getattr(index, axis), strict=False):
            low, high = low + min(0, step * (size - 1)), high + max(0, step * (size - 1))
    return low, high


def _steps(index: Index, axis: str, rank: int) -> Ints:
    steps: Ints = getattr(index, axis)
    return steps or (0,) * rank


def _without_idle_bounds(c: Contraction, access: Access) -> Access:
    def idle(index: Index, size: int) -> bool:
        low, high = reach(c, index)
        return low >= 0 and high < size

    return replace(access, inside=tuple(bound for bound in access.inside if not idle(*bound)))


def _indexes(c: Contraction) -> Iterator[Index]:
    for access in (c.a, c.b):
        yield access.at
        yield from (index for index, _ in access.inside)
    yield c.out
    if c.bias is not None:
        yield c.bias


def _each_index(c: Contraction, change: Callable[[Index], Index]) -> Contraction:
    """With every index changed, in the order of `_indexes`."""

    def changed(access: Access) -> Access:
        at = change(access.at)
        return replace(access, at=at, inside=tuple((change(index), size) for index, size in access.inside))

    a, b, out = changed(c.a), changed(c.b), change(c.out)
    return replace(c, a=a, b=b, out=out, bias=None if c.bias is None else change(c.bias))


def _taking(index: Index, axis: str, columns: list[list[int]], rows: Iterator[int]) -> Index:
    row = next(rows)
    steps = {x: getattr(index, x) for x in AXES} | {axis: tuple(column[row] for column in columns)}
    return Index(index.start, **steps)


def _with_sizes(c: Contraction, axis: str, sizes: Ints) -> Contraction:
    of = {x: getattr(c, x) for x in AXES} | {axis: sizes}
    return replace(c, z=of["z"], m=of["m"], n=of["n"], k=of["k"])
