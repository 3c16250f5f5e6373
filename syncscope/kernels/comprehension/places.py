"""Where elements lie: loads with addresses for indexes, and loops that need not be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from syncscope.kernels.comprehension.algebra import Poly
from syncscope.kernels.comprehension.fuse import Nest
from syncscope.kernels.comprehension.products import lines
from syncscope.kernels.comprehension.program import Load, Step
from syncscope.kernels.comprehension.tree import Apply, Name, Node

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place(Node):
    """A load whose place is worked out: counted from the tensor's first element, with what must stay in bounds."""

    tensor: str
    address: Poly
    bounds: tuple[tuple[Poly, int], ...] = ()
    other: Node | None = None


class Places:
    """A nest's statements with places for loads, over as few variables as they need."""

    def __init__(self, nest: Nest, shapes: Mapping[str, Ints], strides: Mapping[str, Ints]) -> None:
        self.nest, self.shapes, self.strides = nest, shapes, strides
        self.points = dict(nest.points)
        self.steps = [self.placed(step) for step in nest.steps]
        self.collapse()

    def placed(self, step: Step) -> Step:
        """With addresses for indexes."""
        return replace(step, value=self.place(step.value), left=(self.address(step.target, step.left),))

    def address(self, tensor: str, at: tuple[Poly, ...]) -> Poly:
        total = Poly()
        for index, stride in zip(at, self.strides[tensor], strict=True):
            total += index.replaced({}, self.place) * stride
        return total

    def place(self, node: Node) -> Node:
        match node:
            case Apply():
                return replace(node, args=tuple(map(self.place, node.args)))
            case Load(tensor, at, checked, other):
                if tensor in self.nest.values and any(s.target == tensor for s in self.nest.steps):
                    return node
                shape = self.shapes[tensor]
                bounds = tuple(
                    (q.replaced({}, self.place), size)
                    for q, check, size in zip(at, checked, shape, strict=True)
                    if check
                )
                other = None if other is None else self.place(other)
                return Place(tensor, self.address(tensor, at), bounds, other)
        return node

    def collapse(self) -> None:
        """Joins neighbouring variables that every place steps through evenly."""
        spaces = [list(self.points)] + [[n for n in s.ranges if n not in self.points] for s in self.steps]
        for which, names in enumerate(spaces):
            i = len(names) - 1
            while i > 0:
                outer, inner = names[i - 1], names[i]
                size = self.points[inner] if which == 0 else self.steps[which - 1].size(inner)
                steps = self.steps if which == 0 else [self.steps[which - 1]]
                left_apart = which and (outer in self.steps[which - 1].out) != (inner in self.steps[which - 1].out)
                if not left_apart and all(_even(s, outer, inner, size) for s in steps):
                    self.join(which, outer, inner)
                    del names[i - 1]
                i -= 1

    def join(self, which: int, outer: str, inner: str) -> None:
        given = {outer: Poly()}
        if which == 0:
            self.points[inner] *= self.points.pop(outer)
        for i, s in enumerate(self.steps):
            if which in (0, i + 1):
                size = s.size(outer) * s.size(inner) if inner in s.ranges and outer in s.ranges else 0
                ranges = {n: (0, size) if n == inner and size else r for n, r in s.ranges.items() if n != outer}
                value = replaced(s.value, given)
                left = tuple(q.replaced(given) for q in s.left)
                self.steps[i] = replace(
                    s, ranges=ranges, value=value, left=left, out=tuple(n for n in s.out if n != outer)
                )


def nodes(node: Node) -> Iterator[Node]:
    """The expression and all below it."""
    yield node
    match node:
        case Apply():
            below = node.args
        case Place(_, address, bounds, other):
            below = tuple(x for p in (address, *(q for q, _ in bounds)) for x in p.values()) + (
                () if other is None else (other,)
            )
        case _:
            below = ()
    for x in below:
        yield from nodes(x)


def replaced(node: Node, given: Mapping[str, Poly]) -> Node:
    """With polynomials for variables."""
    match node:
        case Name(name) if name in given:
            return given[name].node()
        case Apply():
            return replace(node, args=tuple(replaced(x, given) for x in node.args))
        case Place(_, address, bounds, other):
            return replace(
                node, address=address.replaced(given, lambda x: replaced(x, given)),
                bounds=tuple((q.replaced(given, lambda x: replaced(x, given)), size) for q, size in bounds),
                other=None if other is None else replaced(other, given),
            )  # fmt: skip
    return node


def unplaced(node: Node) -> Node:
    """With loads again for places: what an expression is does not depend on them."""
    match node:
        case Apply():
            return replace(node, args=tuple(map(unplaced, node.args)))
        case Place(tensor):
            return Load(tensor)
    return node


def _even(step: Step, outer: str, inner: str, size: int) -> bool:
    """Whether two variables are one to a statement: each place steps by `size` times as much for the outer."""
    if (outer in step.ranges) != (inner in step.ranges):
        return False
    for x in (*nodes(step.value), step.left[0]):
        if isinstance(x, Name) and x.name in (outer, inner):
            return False
        if isinstance(x, Place) and any({outer, inner} & q.variables() for q, _ in x.bounds):
            return False
        address = x.address if isinstance(x, Place) else x if isinstance(x, Poly) else None
        if address is None or not {outer, inner} & address.variables():
            continue
        line = lines(address)
        if line is None or line[1].get(outer, 0) != size * line[1].get(inner, 0):
            return False
    return True
