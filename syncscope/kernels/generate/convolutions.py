"""The three passes of a convolution as contractions, over any number of spatial dimensions, with groups.

An image is (N, CI, *X), a weight (CO, CI / groups, *W), what is made (N, CO, *Y), all row-major. With channels `last` the
operands lie as (N, *X, CI), (CO, *W, CI / groups) and (N, *Y, CO), the weight of several taps to the input as
(CI / groups, *W, CO), and what a pass makes is row-major as ever: neighbours in memory are then neighbours along k or the
columns whatever window sees them, and are inside or outside of an image together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from syncscope.kernels.generate.ir import Access, Contraction, Index, Ints, moved_inside


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes and parameters, one number for each spatial dimension where there are several."""

    image: Ints
    weight: Ints
    made: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int


@dataclass(frozen=True, slots=True)
class Lying:
    """How images lie in memory: their own shape, or one with zeros around each, and where the first pixel is then."""

    shape: Ints
    first: Ints


def forward(g: Geometry, name: str, bias: bool, image: Lying | None = None, last: bool = False) -> Contraction:
    """Rows are channels made, columns the pixels made, and k what each of them sees."""
    w, y = _steps(g.weight, last), _steps(g.made)
    seen = _seen(g, image, pixels="n", taps="k", last=last)
    per_group = g.made[1] // g.groups
    c = Contraction(
        name, (g.groups,), (per_group,), (g.made[0], *g.made[2:]), g.weight[1:],
        Access(Index(0, z=(per_group * w[0],), m=(w[0],), k=w[1:])), seen,
        Index(0, z=(per_group * y[1],), m=(y[1],), n=(y[0], *y[2:])),
        Index(0, z=(per_group,), m=(1,)) if bias else None,
    )  # fmt: skip
    return moved_inside(c, "k") if last else c


def backward_weight(g: Geometry, name: str, image: Lying | None = None, last: bool = False) -> Contraction:
    """Rows are channels made, columns the taps, and k every pixel made of every image."""
    w, y = _steps(g.weight), _steps(g.made, last)
    per_group = g.made[1] // g.groups
    c = Contraction(
        name, (g.groups,), (per_group,), g.weight[1:], (g.made[0], *g.made[2:]),
        Access(Index(0, z=(per_group * y[1],), m=(y[1],), k=(y[0], *y[2:]))),
        _seen(g, image, pixels="k", taps="n", last=last),
        Index(0, z=(per_group * w[0],), m=(w[0],), n=w[1:]),
    )  # fmt: skip
    return moved_inside(c, "n") if last else c


def backward_input(
    g: Geometry, name: str, bias: bool, made: Lying | None = None, last: bool = False
) -> Iterator[Contraction]:
    """Rows are channels read, columns the pixels read, and k every place that saw them: a gather.

    A stride of s splits the pixels into s classes a dimension that are seen through different taps; within a class, neighbours
    are seen by neighbours, and it is a convolution without stride.
    """
    lying = made or Lying(g.made, (0,) * len(g.stride))
    x, w, y = _steps(g.image), _steps(g.weight), _steps(lying.shape, last)
    if last and math.prod(g.weight[2:]) > 1:
        w = _steps((g.weight[1], g.weight[0], *g.weight[2:]), last)
        w = (w[1], w[0], *w[2:])
    per_group, read = g.made[1] // g.groups, g.weight[1]
    ways = [list(_classes(g, d)) for d in range(len(g.stride))]
    for classes in itertools.product(*ways):
        first, pixels, tap, taps, sees, back, every = (tuple(values) for values in zip(*classes, strict=True))
        origin = tuple(a + b for a, b in zip(sees, lying.first, strict=True))
        inside = tuple(
            (
                Index(origin[d], n=_unit(d + 1, len(pixels) + 1, 1), k=_unit(d + 1, len(pixels) + 1, -back[d])),
                lying.shape[d + 2],
            )
            for d in range(len(pixels))
        )
        c = Contraction(
            name, (g.groups,), (read,), (g.image[0], *pixels), (per_group, *taps),
            Access(Index(
                _dot(tap, w[2:]), z=(per_group * w[0],), m=(w[1],), k=(w[0], *_times(every, w[2:])),
            )),
            Access(Index(
                _dot(origin, y[2:]), z=(per_group * y[1],), n=(y[0], *y[2:]), k=(y[1], *_times([-b for b in back], y[2:])),
            ), inside),
            Index(_dot(first, x[2:]), z=(read * x[1],), m=(x[1],), n=(x[0], *_times(g.stride, x[2:]))),
            Index(0, z=(read,), m=(1,)) if bias else None,
        )  # fmt: skip
        yield moved_inside(c, "k") if last else c


def _classes(g: Geometry, d: int) -> Iterator[tuple[int, ...]]:
    """The pixels first, first + stride, ... of a dimension: how many; the first tap that sees them, how many taps, what made
    pixel sees the first through it, how far back the next tap looks, and how far apart the taps are."""
    s, p, e, taps = g.stride[d], g.padding[d], g.dilation[d], g.weight[d + 2]
    apart = s // math.gcd(s, e)
    for first in range(min(s, g.image[d + 2])):
        tap = next((t for t in range(min(apart, taps)) if (first + p - t * e) % s == 0), None)
        pixels = -(-(g.image[d + 2] - first) // s)
        if tap is None:
            yield first, pixels, 0, 0, 0, 0, 0
        else:
            yield first, pixels, tap, -(-(taps - tap) // apart), (first + p - tap * e) // s, apart * e // s, apart


def margins(g: Geometry) -> Lying:
    """The images with as much around them as `forward` and `backward_weight` look at."""
    last = [
        (y - 1) * s + (w - 1) * e + 1 for y, s, w, e in zip(g.made[2:], g.stride, g.weight[2:], g.dilation, strict=True)
    ]
    sizes = [max(size, x + p) for size, x, p in zip(last, g.image[2:], g.padding, strict=True)]
    return Lying((*g.image[:2], *sizes), g.padding)


def margins_made(g: Geometry) -> Lying:
    """What was made with as much around it as `backward_input` looks at."""
    low, high = [0] * len(g.stride), list(g.made[2:])
    for d in range(len(g.stride)):
        for _, pixels, _, taps, sees, back, _ in _classes(g, d):
            low[d] = min(low[d], sees - max(taps - 1, 0) * back)
            high[d] = max(high[d], sees + pixels)
    return Lying((*g.made[:2], *(b - a for a, b in zip(low, high, strict=True))), tuple(-a for a in low))


def _seen(g: Geometry, image: Lying | None, pixels: str, taps: str, last: bool) -> Access:
    """What a pixel made sees of the image through a tap; the padding is outside, or lies around it."""
    lying = image or Lying(g.image, (0,) * len(g.stride))
    x, rank = _steps(lying.shape, last), len(g.stride) + 1
    begin = tuple(first - p for first, p in zip(lying.first, g.padding, strict=True))
    at = Index(
        _dot(begin, x[2:]), z=(g.weight[1] * x[1],),
        **{pixels: (x[0], *_times(g.stride, x[2:])), taps: (x[1], *_times(g.dilation, x[2:]))},
    )  # fmt: skip
    inside = (
        (
            Index(first, **{pixels: _unit(d + 1, rank, g.stride[d]), taps: _unit(d + 1, rank, g.dilation[d])}),
            lying.shape[d + 2],
        )
        for d, first in enumerate(begin)
    )
    return Access(at, tuple(inside))


def _steps(shape: Ints, last: bool = False) -> Ints:
    if last:
        image, *rest = _steps((shape[0], *shape[2:], shape[1]))
        return (image, 1, *rest[:-1])
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def _unit(at: int, rank: int, value: int) -> Ints:
    return tuple(value if i == at else 0 for i in range(rank))


def _times(a: tuple[int, ...] | list[int], b: Ints) -> Ints:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _dot(a: Ints, b: Ints) -> int:
    return sum(_times(a, b))


def columns(name: str, g: Geometry) -> int:
    """How many columns a contraction has once its rows and columns have changed places."""
    return g.weight[1] if name == "conv_backward_input" else g.made[1] // g.groups
