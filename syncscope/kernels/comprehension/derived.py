"""What derived statements are made of: parts of a gradient, and what must be known of their expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from syncscope.kernels.comprehension.algebra import Poly, poly
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.notation import FLOATS
from syncscope.kernels.comprehension.ranges import Ranged, infer
from syncscope.kernels.comprehension.slopes import ZERO
from syncscope.kernels.comprehension.tree import Apply, Function, Name, Node, Number, Read, Statement, names
from syncscope.kernels.comprehension.words import NotationError

_TRUTHS = ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "not")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a gradient: what is on the left, and the ranges of that and of what is summed over."""

    left: tuple[str, ...]
    value: Node
    ranges: dict[str, tuple[Poly, Poly]]

    @property
    def reduced(self) -> bool:
        return len(self.ranges) > len(self.left)

    def statement(self, target: str) -> Statement:
        return Statement(target, self.left, "+" if self.reduced else "=", True, self.value, clauses(self.ranges))


def multiplied(ranged: Ranged) -> set[str]:
    """The tensors that a sum of products multiplies: a product reads them from memory."""
    whole = ranged.value
    if ranged.statement.op != "+" or not ranged.reduced or not isinstance(whole, Apply) or whole.function != "*":
        return set()
    own = set(ranged.reduced)
    return {x.tensor for x in whole.args if isinstance(x, Read) and own & {n for i in x.indexes for n in names(i)}}


def clauses(ranges: Mapping[str, tuple[Poly, Poly]]) -> tuple[tuple[str, Node, Node], ...]:
    """Ranges as they are written."""
    return tuple((name, low.node(), high.node()) for name, (low, high) in ranges.items())


def tidied(f: Function) -> Function:
    """Without the ranges that are found anyway."""
    statements = list(f.statements)
    for i, s in enumerate(statements):
        expected = {name: (poly(low), poly(high)) for name, low, high in s.ranges}
        for clause in s.ranges:
            shorter = replace(statements[i], ranges=tuple(c for c in statements[i].ranges if c is not clause))
            try:
                found = infer(replace(f, statements=(*statements[:i], shorter))).statements[-1].ranges
            except NotationError:
                continue
            if found == expected:
                statements[i] = shorter
    return replace(f, statements=tuple(statements))


def floats(node: Node, kinds: Mapping[str, str]) -> bool:
    """Whether an expression is of floating point."""
    match node:
        case Number(value):
            return isinstance(value, float)
        case Read(tensor):
            return kinds.get(tensor) == "float"
        case Apply(function, _) if function in _TRUTHS:
            return False
        case Apply("/", _):
            return True
        case Apply("?", (_, yes, no)):
            return floats(yes, kinds) or floats(no, kinds)
        case Apply(function, args):
            if function.startswith("cast "):
                return function.removeprefix("cast ") in FLOATS
            return (function in FUNCTIONS and FUNCTIONS[function].floats) or any(floats(x, kinds) for x in args)
    return False


def truths(node: Node) -> bool:
    """Whether an expression is a truth value."""
    return isinstance(node, Apply) and node.function in (*_TRUTHS, "cast bool")


def plain_product(node: Node) -> bool:
    """Whether nothing in it is other than finite where reads give zero."""
    match node:
        case Read() | Number():
            return True
        case Apply("*" | "neg", args):
            return all(map(plain_product, args))
    return False


def moved(node: Node, given: Mapping[str, Poly]) -> Node:
    """With variables solved for; what is then read outside is zero, and counts for nothing."""
    match node:
        case Name(name) if name in given:
            return given[name].node()
        case Apply():
            return replace(node, args=tuple(moved(x, given) for x in node.args))
        case Read():
            touched = any(names(x) & set(given) for x in node.indexes)
            indexes = tuple(poly(x).replaced(given, lambda x: moved(x, given)).node() for x in node.indexes)
            other = (ZERO if touched else None) if node.other is None else moved(node.other, given)
            return replace(node, indexes=indexes, other=other)
    return node
