"""Sums of products as the device's contractions: which statements are one, what must be taken apart first, and how they lie."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from syncscope.kernels.comprehension.algebra import Poly
from syncscope.kernels.comprehension.functions import call
from syncscope.kernels.comprehension.program import Load, Program, Step, kind, settled, variables
from syncscope.kernels.comprehension.tree import Apply, Node, Number
from syncscope.kernels.generate.ir import Access, Contraction, Index, Ints

_SIDE, _DEPTH = 8, 4  # rows, columns and terms from which tiles pay
_GAIN = 4  # how many times less work taking a product of several apart must be

Lines = tuple[int, dict[str, int]]  # where an index begins, and what each variable adds


@dataclass(frozen=True, slots=True)
class Product:
    """A statement that is one contraction of two tensors; `then` and `bias` are of a statement behind that it took in."""

    step: Step
    a: Load
    b: Load
    alpha: float
    numbers: tuple[str, ...]  # given numbers that are factors, too
    then: str = "x"
    bias: Load | None = None
    target: str = ""  # what is written, if that is not the step's own

    @property
    def name(self) -> str:
        """What it writes."""
        return self.target or self.step.target

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return (self.name,)

    @property
    def reads(self) -> set[str]:
        """The tensors that it reads."""
        return {x.tensor for x in (self.a, self.b, self.bias) if x is not None}


def lines(p: Poly) -> Lines | None:
    """A polynomial as a start and a factor for each variable; None if it is of another kind."""
    start, factors = 0, {}
    for monomial, factor in p.terms:
        if not monomial:
            start = factor
        elif len(monomial) == 1 and isinstance(monomial[0], str):
            factors[monomial[0]] = factor
        else:
            return None
    return start, factors


def factors(node: Node) -> list[Node]:
    """What is multiplied."""
    match node:
        case Apply("*", args):
            return [f for x in args for f in factors(x)]
        case Apply("neg", (x,)):
            return [Number(-1), *factors(x)]
        case Apply("/", (x, y)):
            return [*factors(x), Apply("/", (Number(1.0), y))]
    return [node]


def _usable(node: Node) -> bool:
    """Whether a contraction can read this: straight, and zero outside."""
    if not isinstance(node, Load) or not node.at_ or not all(lines(p) for p in node.at_):
        return False
    return not any(node.checked) or node.other == Number(0)


def separated(step: Step, program: Program, fresh: Iterator[str]) -> list[Step | Product]:
    """The statement, or what comes to the same and has products in it that are worth it."""
    if step.op != "+" or not step.reduced or not (step.dtype.is_floating_point or step.dtype.itemsize == 8):
        return [step]
    alpha, numbers = 1.0, []
    outer: list[Node] = []  # factors that the sum does not change
    inner: list[Node] = []
    for factor in factors(step.value):
        if isinstance(factor, Number):
            alpha *= factor.value
        elif isinstance(factor, Load) and factor.tensor in program.numbers:
            numbers.append(factor.tensor)
        elif variables(factor) & set(step.reduced):
            inner.append(factor)
        else:
            outer.append(factor)
    if len(inner) < 2 or any(settled(kind(x, program.dtypes, program.numbers)) != step.dtype for x in inner):
        return [step]
    made: list[Step | Product] = []
    operands: list[Load] = []
    for factor in inner:
        if _usable(factor):
            assert isinstance(factor, Load)
            operands.append(factor)
            continue
        own = variables(factor)
        if step.count([*own]) * 2 * _SIDE > step.count([*step.ranges]):
            return [step]
        operands.append(_lifted(step, factor, [n for n in step.ranges if n in own], program, fresh, made))
    work = step.count([*step.ranges])
    whole = step
    spent = 0
    while len(operands) > 2:
        a, b = min(itertools.combinations(operands, 2), key=lambda pair: step.count(_left(step, pair, operands)))
        spent += step.count([*(variables(a) | variables(b))])
        if spent * _GAIN > work:
            return [whole]
        left = _left(step, (a, b), operands)
        operands = [x for x in operands if x is not a and x is not b]
        pair = Apply("*", (a, b))
        gone = [n for n in step.reduced if n in variables(pair) and n not in left]
        if not gone:
            operands.append(_lifted(step, pair, left, program, fresh, made))
            continue
        load, inner_step = _temporary(step, pair, left, gone, program, fresh)
        made += _one(inner_step, a, b, 1.0, ()) or [inner_step]
        operands.append(load)
        step = replace(step, ranges={n: ends for n, ends in step.ranges.items() if n not in gone})
    a, b = operands
    seen = variables(a) | variables(b)
    if not outer and set(step.out) <= seen:
        product = _one(step, a, b, alpha, tuple(numbers))
        return [*made, *product] if product else [whole]
    if not step.sets:
        return [whole]
    left = [n for n in step.out if n in seen]
    load, summed = _temporary(step, Apply("*", (a, b)), left, [n for n in step.reduced if n in seen], program, fresh)
    times = step.count([n for n in step.reduced if n not in seen])
    product = _one(summed, a, b, alpha * times, tuple(numbers))
    if not product:
        return [whole]
    value: Node = load
    for x in outer:
        value = Apply("*", (value, x))
    ranges = {n: step.ranges[n] for n in step.out}
    return [*made, *product, replace(step, op="=", value=value, ranges=ranges)]


def hoisted(step: Step, program: Program, fresh: Iterator[str]) -> list[Step]:
    """A sum's factors that are the same for all of it come after it: then they need not be there before it begins."""
    if step.op != "+" or not step.reduced or not step.sets or not step.dtype.is_floating_point:
        return [step]
    inner: list[Node] = []
    outer: list[Node] = []
    for factor in factors(step.value):
        (inner if variables(factor) & set(step.reduced) else outer).append(factor)
    if not inner or all(isinstance(x, Number) for x in outer):
        return [step]
    summed, *more = inner
    for x in more:
        summed = Apply("*", (summed, x))
    if settled(kind(summed, program.dtypes, program.numbers)) != step.dtype:
        return [step]
    load, first = _temporary(step, summed, list(step.out), list(step.reduced), program, fresh)
    value: Node = load
    for x in outer:
        value = Apply("*", (value, x))
    return [first, replace(step, op="=", value=value, ranges={n: step.ranges[n] for n in step.out})]


def _left(step: Step, pair: tuple[Load, Load], operands: list[Load]) -> list[str]:
    """The variables that are still needed when two operands have been multiplied."""
    kept = set(step.out).union(*(variables(x) for x in operands if x is not pair[0] and x is not pair[1]))
    return [n for n in step.ranges if n in kept and n in variables(pair[0]) | variables(pair[1])]


def _temporary(
    step: Step, value: Node, left: list[str], gone: list[str], program: Program, fresh: Iterator[str]
) -> tuple[Load, Step]:
    """A tensor for a part of a statement, and the statement that makes it."""
    name = next(fresh)
    program.shapes[name] = tuple(step.size(n) for n in left)
    program.dtypes[name] = step.dtype
    ranges = {n: step.ranges[n] for n in (*left, *gone)}
    polys = tuple(map(Poly.of, left))
    made = Step(
        name, tuple(left), "+" if gone else "=", True, value, ranges, step.dtype, f"part of {step.written}", polys
    )
    return Load(name, polys, (False,) * len(left)), made


def _lifted(
    step: Step, value: Node, own: list[str], program: Program, fresh: Iterator[str], made: list[Step | Product]
) -> Load:
    load, lifted = _temporary(step, value, own, [], program, fresh)
    made.append(lifted)
    return load


def _one(step: Step, a: Load, b: Load, alpha: float, numbers: tuple[str, ...]) -> list[Step | Product]:
    """The product, the operand that is seen through windows or has the last column on the right; none if tiles do not pay."""
    last = step.out[-1] if step.out else ""
    if (any(a.checked), last in variables(a)) > (any(b.checked), last in variables(b)):
        a, b = b, a
    product = Product(step, a, b, alpha, numbers)
    z, m, n, k = (step.count(names) for names in _axes(product))
    if min(m, n) < _SIDE or k < _DEPTH or z * m * n * k >= 1 << 62:
        return []
    return [product]


def _axes(p: Product) -> tuple[list[str], list[str], list[str], list[str]]:
    a, b = variables(p.a), variables(p.b)
    out = p.step.out
    return (
        [n for n in out if n in a and n in b], [n for n in out if n in a and n not in b],
        [n for n in out if n not in a], list(p.step.reduced),
    )  # fmt: skip


def contraction(p: Product, name: str, shapes: Mapping[str, Ints], strides: Mapping[str, Ints]) -> Contraction:
    """For the generator; shapes and strides are those of the tensors it reads and writes."""
    axes = _axes(p)

    def index(places: tuple[Poly, ...], steps: Ints) -> Index:
        found = [line for q in places if (line := lines(q))]
        per = {n: sum(f.get(n, 0) * s for (_, f), s in zip(found, steps, strict=True)) for x in axes for n in x}
        return Index(
            sum(start * s for (start, _), s in zip(found, steps, strict=True)),
            *(tuple(per[n] for n in x) for x in axes),
        )  # fmt: skip

    def access(load: Load, shape: Ints) -> Access:
        bounds = (
            (index((q,), (1,)), size) for q, checked, size in zip(load.at_, load.checked, shape, strict=True) if checked
        )
        return Access(index(load.at_, strides[load.tensor]), tuple(bounds))

    sizes = [tuple(p.step.size(n) for n in x) for x in axes]
    bias = None if p.step.sets else index(p.step.left, strides[p.name])
    if p.bias is not None:
        bias = index(p.bias.at_, strides[p.bias.tensor])
    return Contraction(
        name, sizes[0], sizes[1], sizes[2], sizes[3], access(p.a, shapes[p.a.tensor]), access(p.b, shapes[p.b.tensor]),
        index(p.step.left, strides[p.name]), bias, p.then,
    )  # fmt: skip


def with_following(p: Product, step: Step, program: Program) -> Product | None:
    """The product with a statement taken in that only goes on with what it makes, element by element; None if it cannot."""
    if p.bias is not None or p.then != "x" or not p.step.sets or step.reduced or not step.sets:
        return None
    given = list(_all_loads(step.value))
    own = [x for x in given if x.tensor == p.step.target]
    rest = [x for x in given if x.tensor != p.step.target]
    if (
        len(own) != 1
        or any(own[0].checked)
        or len(set(rest)) > 1
        or step.dtype != p.step.dtype
        or not step.dtype.is_floating_point
    ):
        return None
    places = [lines(q) for q in own[0].at_]
    order = [next(iter(x[1])) for x in places if x is not None and x[0] == 0 and list(x[1].values()) == [1]]
    if len(order) != len(step.out) or set(order) != set(step.out):
        return None
    renamed = dict(zip(order, p.step.out, strict=True))
    there = {old: Poly.of(new) for old, new in renamed.items()}
    bias = None
    if rest:
        usable = (
            not any(rest[0].checked) and rest[0].tensor not in program.numbers and all(lines(q) for q in rest[0].at_)
        )
        if not usable or program.dtypes[rest[0].tensor] != step.dtype:
            return None
        bias = replace(rest[0], at_=tuple(q.replaced(there) for q in rest[0].at_))
    then = _then(step.value, own[0])
    if then is None:
        return None
    then = "x" if then == "(x + y)" else then
    left = {new: q for old, new in renamed.items() for name, q in zip(step.out, step.left, strict=True) if name == old}
    out = tuple(renamed[n] for n in step.out)
    # The loops stay as they are; only where an element lies follows the statement behind.
    ranges = {n: p.step.ranges[n] for n in (*out, *p.step.reduced)}
    moved = replace(
        p.step,
        out=out,
        ranges=ranges,
        left=tuple(left[n].replaced(there) for n in out),
    )
    return replace(p, step=moved, then=then, bias=bias, target=step.target)


def _all_loads(node: Node) -> Iterator[Load]:
    if isinstance(node, Load):
        yield node
    for x in node.args if isinstance(node, Apply) else ():
        yield from _all_loads(x)


_THEN = ("max", "min", "fmax", "fmin", "exp", "tanh", "sqrt", "fabs")


def _then(node: Node, x: Load) -> str | None:
    """C in `x`, what the product makes, and `y`, the other tensor, in their own type T."""
    match node:
        case Load():
            return "x" if node is x else "y"
        case Number(value) if abs(value) < float("inf"):
            return f"(T){float(value)!r}"
        case Apply("+" | "-" | "*" | "/" as op, (left, right)):
            both = _then(left, x), _then(right, x)
            return None if None in both else f"({both[0]} {op} {both[1]})"
        case Apply("<" | "<=" | ">" | ">=" as op, (left, right)):
            both = _then(left, x), _then(right, x)
            return None if None in both else f"({both[0]} {op} {both[1]})"
        case Apply("neg", (inner,)):
            one = _then(inner, x)
            return None if one is None else f"(-{one})"
        case Apply("?", args):
            three = [_then(arg, x) for arg in args]
            return None if None in three else f"({three[0]} ? {three[1]} : {three[2]})"
        case Apply(function, args) if function in _THEN:
            every = [_then(arg, x) for arg in args]
            return None if None in every else f"({call(function, [str(one) for one in every], 'T')})"
    return None
