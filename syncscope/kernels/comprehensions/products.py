"""Sums of products as the device's contractions: which statements are one, what must be taken apart first, and how they lie."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from syncscope.kernels.comprehensions.expressions import Apply, Node, Number, Poly, Read, factors, joined, names, reads
from syncscope.kernels.comprehensions.functions import call
from syncscope.kernels.comprehensions.program import Ints, Program, Step
from syncscope.kernels.device import is_gpu
from syncscope.kernels.generate.ir import Access, Contraction, Index

_SIDE, _DEPTH = 8, 4  # rows, columns and terms from which tiles pay
_EVEN = 8  # the least steps of k that a tile takes at once
_GAIN = 4  # how many times less work taking a product of several apart must be


@dataclass(frozen=True, slots=True)
class Product:
    """A statement that is one contraction of two tensors; `then` and `bias` are of a statement behind that it took in."""

    step: Step
    a: Read
    b: Read
    alpha: float
    numbers: tuple[str, ...]  # given numbers that are factors, too
    then: str = "x"
    bias: Read | None = None

    @property
    def target(self) -> str:
        """What it writes."""
        return self.step.target

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return (self.step.target,)

    @property
    def reads(self) -> set[str]:
        """The tensors that it reads."""
        return {x.tensor for x in (self.a, self.b, self.bias) if x is not None}

    @property
    def axes(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """The variables that both operands have, rows, columns, and what is summed over."""
        a, b, out = names(self.a), names(self.b), self.step.out
        return (
            [n for n in out if n in a and n in b], [n for n in out if n in a and n not in b],
            [n for n in out if n not in a], self.depth,
        )  # fmt: skip

    @property
    def depth(self) -> list[str]:
        """What is summed over; on a GPU the taps of windows outermost, if the rest is even: then where they look stays for
        all steps of a tile."""
        every = [names(p) for x in (self.a, self.b) for p in x.indexes]
        taps = [n for n in self.step.reduced if any(n in found and len(found) > 1 for found in every)]
        rest = [n for n in self.step.reduced if n not in taps]
        return [*taps, *rest] if is_gpu and rest and self.step.count(rest) % _EVEN == 0 else list(self.step.reduced)


Made = list[Step | Product]


def separated(step: Step, program: Program) -> Made:
    """The statement, or what comes to the same and has products in it that are worth it."""
    if step.op != "+" or not step.reduced or not (step.dtype.is_floating_point or step.dtype.itemsize == 8):
        return [step]
    alpha, numbers = 1.0, []
    outer: list[Node] = []  # factors that the sum does not change
    inner: list[Node] = []
    for factor in factors(step.value):
        match factor:
            case Number(value):
                alpha *= value
            case Read(tensor) if tensor in program.numbers:
                numbers.append(tensor)
            case _:
                (inner if names(factor) & set(step.reduced) else outer).append(factor)
    if len(inner) < 2 or any(program.dtype(x) != step.dtype for x in inner):
        return [step]
    made: Made = []
    operands: list[Read] = []
    for factor in inner:
        if not _usable(factor) and step.count(names(factor)) * 2 * _SIDE > step.count():
            return [step]
        operands.append(
            factor if isinstance(factor, Read) and _usable(factor) else _lifted(step, factor, program, made)
        )
    small, spent = step, 0
    while len(operands) > 2:
        pairs = ((_kept(small, pair, operands), pair) for pair in itertools.combinations(operands, 2))
        left, (a, b) = min(pairs, key=lambda x: small.count(x[0]))
        pair, seen = Apply("*", (a, b)), names(a) | names(b)
        spent += small.count(seen)
        if spent * _GAIN > step.count():
            return [step]
        operands = [x for x in operands if x is not a and x is not b]
        gone = [n for n in small.reduced if n in seen and n not in left]
        read, part = _temporary(small, pair, left, gone, program)
        product = _product(part, a, b) if gone else None
        made.append(product or part)
        operands.append(read)
        small = replace(small, ranges={n: ends for n, ends in small.ranges.items() if n not in gone})
    a, b = operands
    seen = names(a) | names(b)
    if not outer and set(small.out) <= seen:
        whole = _product(small, a, b, alpha, numbers)
        return [*made, whole] if whole else [step]
    left, gone = [n for n in small.out if n in seen], [n for n in small.reduced if n in seen]
    read, part = _temporary(small, Apply("*", (a, b)), left, gone, program)
    product = _product(part, a, b, alpha * small.count(n for n in small.reduced if n not in seen), numbers)
    return [*made, product, _ending(small, [read, *outer])] if product else [step]


def hoisted(step: Step, program: Program) -> list[Step]:
    """A sum's factors that are the same for all of it come after it: then they need not be there before it begins."""
    if step.op != "+" or not step.reduced or not step.dtype.is_floating_point:
        return [step]
    every = factors(step.value)
    outer = [x for x in every if not names(x) & set(step.reduced)]
    summed = joined("*", (x for x in every if names(x) & set(step.reduced)))
    if summed is None or all(isinstance(x, Number) for x in outer) or program.dtype(summed) != step.dtype:
        return [step]
    read, first = _temporary(step, summed, step.out, step.reduced, program)
    return [first, _ending(step, [read, *outer])]


def _ending(step: Step, value: list[Node]) -> Step:
    """The statement as a product of what a sum gave and what it does not change."""
    whole = joined("*", value)
    assert whole is not None
    return replace(step, op="=", value=whole, ranges={n: step.ranges[n] for n in step.out})


def _usable(node: Node) -> bool:
    """Whether a contraction can read this: straight, and zero outside."""
    if not isinstance(node, Read) or not node.indexes or not all(p.line() for p in node.indexes):
        return False
    return not node.bounds or node.other == Number(0)


def _kept(step: Step, pair: tuple[Read, Read], operands: list[Read]) -> list[str]:
    """The variables that are still needed when two operands have been multiplied."""
    needed = set(step.out).union(*(names(x) for x in operands if x is not pair[0] and x is not pair[1]))
    return [n for n in step.ranges if n in needed and n in names(pair[0]) | names(pair[1])]


def _temporary(
    step: Step, value: Node, left: Iterable[str], gone: Iterable[str], program: Program
) -> tuple[Read, Step]:
    """A tensor for a part of a statement, and the statement that makes it."""
    left, gone = tuple(left), tuple(gone)
    name, polys = program.part(map(step.size, left), step.dtype), tuple(map(Poly.of, left))
    ranges = {n: step.ranges[n] for n in (*left, *gone)}
    op, written = "+" if gone else "=", f"part of {step.written}"
    return Read(name, polys), Step(name, left, op, value, ranges, step.dtype, written, polys)


def _lifted(step: Step, value: Node, program: Program, made: Made) -> Read:
    """A factor that is made first."""
    read, part = _temporary(step, value, [n for n in step.ranges if n in names(value)], (), program)
    made.append(part)
    return read


def _product(step: Step, a: Read, b: Read, alpha: float = 1.0, numbers: Iterable[str] = ()) -> Product | None:
    """The product, the operand that is seen through windows or has the last column on the right; None if tiles do not pay."""
    last = step.out[-1] if step.out else ""
    if (bool(a.bounds), last in names(a)) > (bool(b.bounds), last in names(b)):
        a, b = b, a
    product = Product(step, a, b, alpha, tuple(numbers))
    z, m, n, k = map(step.count, product.axes)
    return None if min(m, n) < _SIDE or k < _DEPTH or z * m * n * k >= 1 << 62 else product


def contraction(p: Product, name: str, strides: Callable[[str], Ints]) -> Contraction:
    """For the generator; the strides are those of the tensors it reads and writes."""

    def index(polys: Iterable[Poly], steps: Ints) -> Index:
        found = [line for q in polys if (line := q.line())]
        start = sum(first * step for (first, _), step in zip(found, steps, strict=True))
        per = (
            tuple(sum(of.get(n, 0) * step for (_, of), step in zip(found, steps, strict=True)) for n in x)
            for x in p.axes
        )
        return Index(start, *per)

    def access(read: Read) -> Access:
        return Access(
            index(read.indexes, strides(read.tensor)), tuple((index((q,), (1,)), size) for q, size in read.bounds)
        )

    out = index(p.step.left, strides(p.target))
    bias = index(p.bias.indexes, strides(p.bias.tensor)) if p.bias else None
    z, m, n, k = (tuple(map(p.step.size, x)) for x in p.axes)
    return Contraction(name, z, m, n, k, access(p.a), access(p.b), out, bias, "x" if p.then == _ADDED else p.then)


def with_following(p: Product, step: Step, program: Program) -> Product | None:
    """The product with a statement taken in that only goes on with what it makes, element by element; None if it cannot."""
    if step.reduced:
        return None
    found = [x for x in reads(step.value) if x.tensor == p.target]
    rest = {x for x in reads(step.value) if x.tensor != p.target}
    if (
        len(found) != 1
        or found[0].bounds
        or len(rest) + (p.bias is not None) > 1
        or step.dtype != p.step.dtype
        or not step.dtype.is_floating_point
    ):
        return None
    order = [q.name for q in found[0].indexes if q.name]
    if len(order) != len(step.out) or set(order) != set(step.out):
        return None
    there = {old: Poly.of(new) for old, new in zip(order, p.step.out, strict=True)}
    bias = next(iter(rest), None)
    if bias is not None:
        if bias.bounds or bias.tensor in program.numbers or not all(q.line() for q in bias.indexes):
            return None
        if program.dtypes[bias.tensor] != step.dtype:
            return None
        bias = replace(bias, indexes=tuple(q.replaced(there) for q in bias.indexes))
    then = _then(step.value, p)
    if then is None:
        return None
    # The loops stay as they are; only where an element lies follows the statement behind.
    names_ = dict(zip(order, p.step.out, strict=True))
    out = tuple(names_[n] for n in step.out)
    moved = replace(
        p.step, target=step.target, out=out, ranges={n: p.step.ranges[n] for n in (*out, *p.step.reduced)},
        left=tuple(q.replaced(there) for q in step.left), written=f"{p.step.written}, then {step.target}",
    )  # fmt: skip
    return replace(p, step=moved, then=then, bias=bias or p.bias)


_ADDED = "(x + y)"  # the bias is added by itself
_THEN = {op: f"({{}} {op} {{}})" for op in "+ - * / < <= > >=".split()} | {"neg": "(-{})", "?": "({} ? {} : {})"}
_CALLS = ("max", "min", "fmax", "fmin", "exp", "tanh", "sqrt", "fabs")


def _then(node: Node, p: Product) -> str | None:
    """C in `x`, what the product makes, and `y`, the other tensor, in their own type T."""
    match node:
        case Read(tensor):
            return p.then if tensor == p.target else "y"
        case Number(value) if abs(value) < float("inf"):
            return f"(T){float(value)!r}"
        case Apply(function, args):
            parts = [text for x in args if (text := _then(x, p))]
            if len(parts) == len(args) and function in _THEN:
                return _THEN[function].format(*parts)
            if len(parts) == len(args) and function in _CALLS:
                return f"({call(function, parts, 'T')})"
    return None
