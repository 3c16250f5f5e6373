"""Where elements lie: reads with addresses for indexes, and loops that need not be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from syncscope.kernels.comprehensions.expressions import Node, Poly, Read, names, reads, rewrite
from syncscope.kernels.comprehensions.fuse import Nest
from syncscope.kernels.comprehensions.program import Ints, Step


def placed(nest: Nest, strides: Callable[[str], Ints]) -> tuple[dict[str, int], list[Step]]:
    """The points, and the statements with one index for each read: counted from the tensor's first element.

    Neighbouring variables become one where every place steps through them evenly. What a point has one of has no index.
    """
    held = nest.values & {s.target for s in nest.steps}

    def address(tensor: str, polys: Sequence[Poly]) -> Poly:
        total = Poly()
        for index, stride in zip(polys, strides(tensor), strict=True):
            total += index * stride
        return total

    def place(x: Node) -> Node:
        if not isinstance(x, Read):
            return x
        return Read(x.tensor) if x.tensor in held else replace(x, indexes=(address(x.tensor, x.indexes),))

    steps = [replace(s, value=rewrite(s.value, place), left=(address(s.target, s.left),)) for s in nest.steps]
    points = dict(nest.points)
    steps = _merged(points, steps)
    for i, s in enumerate(steps):
        (steps[i],) = _merged({n: s.size(n) for n in s.ranges if n not in points}, [s])
    return points, steps


def _merged(sizes: dict[str, int], steps: list[Step]) -> list[Step]:
    """With as few of these variables as statements allow; `sizes` follow."""
    inner, *others = [*reversed(sizes)] or [""]
    for outer in others:
        if not all(_even(s, outer, inner, sizes[inner]) for s in steps):
            inner = outer
            continue
        sizes[inner] *= sizes.pop(outer)
        for i, s in enumerate(steps):
            ranges = {n: (0, sizes[n]) if n == inner else ends for n, ends in s.ranges.items() if n != outer}
            steps[i] = s.replaced({outer: Poly()}, ranges=ranges, out=tuple(n for n in s.out if n != outer))
    return steps


def _even(step: Step, outer: str, inner: str, size: int) -> bool:
    """Whether two variables are one to a statement: each place steps by `size` times as much for the outer."""
    pair, found = {outer, inner}, reads(step.value)
    values = rewrite(step.value, lambda x: Poly() if isinstance(x, Poly) else x)
    whole = [values, *(p for x in found for p, _ in x.bounds)]
    if (outer in step.out) != (inner in step.out) or any(pair & names(x) for x in whole):
        return False
    places = [*step.left, *(p for x in found for p in x.indexes)]
    lines = [p.line() for p in places if pair & names(p)]
    return all(line is not None and line[1].get(outer, 0) == size * line[1].get(inner, 0) for line in lines)
