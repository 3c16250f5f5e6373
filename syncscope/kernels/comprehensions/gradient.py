"""The gradient of a comprehension, as a comprehension: what the chain rule gives, with every read turned around.

A tensor that is read at f(x) gets its gradient at y from all x with f(x) = y. That is solved for one variable of each index: a
gather, which needs no atomics. Statements that only compute element by element are made again; sums and the like are kept from
the forward pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from syncscope.kernels.comprehensions.dtypes import DTYPES, FLOAT, category, kind, settled
from syncscope.kernels.comprehensions.expressions import (
    Apply,
    Name,
    Node,
    Number,
    Poly,
    Read,
    combine,
    conditional,
    joined,
    names,
    poly,
    reads,
    replaced,
    rewrite,
)  # fmt: skip
from syncscope.kernels.comprehensions.notation import FLOATS, parse
from syncscope.kernels.comprehensions.ranges import ranged
from syncscope.kernels.comprehensions.shifts import idle
from syncscope.kernels.comprehensions.slopes import ONE, ZERO, plus, slope, times
from syncscope.kernels.comprehensions.statements import Function, Parameter, Range, Statement, show, show_function
from syncscope.kernels.comprehensions.words import NotationError

_TYPES = ("bool", "int", "float")  # by category


def gradient_of(f: Function, tensor: str) -> str:
    """The name of a tensor's gradient; "d_" and its own, or more of them where the function has such names itself."""
    used, mark = {*f.sizes, *f.fixed}.union(*({*s.ranges, *names(s.value)} for s in f.statements)), "d_"
    while any(f"{mark}{name}" in used for name in f.sizes):
        mark += "d_"
    return f"{mark}{tensor}"


def gradient(f: Function, wanted: frozenset[str] | None = None) -> Function:
    """The gradient to the inputs `wanted`, all of floating point by default.

    It takes some of the inputs, tensors of the forward pass and gradients of results, all by these names.

    Raises:
        NotationError: a read cannot be turned around, or a function's slope is not known.
    """
    return _Gradient(f, wanted).made()


def tidied(f: Function) -> Function:
    """Without the ranges that are found anyway."""
    statements = []
    for s in f.statements:
        kept = s
        for name in s.ranges:
            fewer = replace(kept, ranges={n: ends for n, ends in kept.ranges.items() if n != name})
            try:
                kept = fewer if ranged(fewer, f.sizes, f.fixed, f.text).ranges == s.ranges else kept
            except NotationError:
                continue
        statements.append(kept)
    return replace(f, statements=tuple(statements))


class _Gradient:
    def __init__(self, f: Function, wanted: frozenset[str] | None) -> None:
        self.f, self.sizes = f, f.sizes
        floats = [p.name for p in f.parameters if p.type in FLOATS and p.dims is not None]
        self.wanted = [n for n in floats if wanted is None or n in wanted]
        self.statements: list[Statement] = []
        self.parts: dict[str, list[Statement]] = {}  # of a tensor's gradient
        self.totals: dict[str, str] = {}  # and the name of it, once it is written
        self.flows: set[str] = set(self.wanted)  # tensors that depend on a wanted input
        # Only the category of a dtype counts here.
        self.dtypes = {p.name: DTYPES.get(p.type, torch.int64) for p in f.parameters}
        self.dtypes |= {p.name: torch.float32 for p in f.parameters if p.type in FLOATS}
        without = idle(f)
        for s in f.statements:
            dtype = settled(kind(s.value, self.dtypes))
            self.dtypes[s.target] = torch.int64 if s.op in "+*" and category(dtype) != FLOAT else dtype
            if category(dtype) == FLOAT and _read(s.value) & self.flows and s.target not in without:
                self.flows.add(s.target)
        self.used = {*self.sizes, *f.fixed}.union(*({*s.ranges, *names(s.value)} for s in f.statements))
        self.used |= set(map(self.name, self.sizes))

    def name(self, tensor: str) -> str:
        return gradient_of(self.f, tensor)

    def fail(self, at: int, message: str, hint: str) -> NotationError:
        return self.f.error(at, message, f"{hint}, or give `backward=`")

    def fresh(self, wish: str) -> str:
        wishes = itertools.chain([wish], (f"{wish}{i}" for i in itertools.count(2)))
        name = next(n for n in wishes if n not in self.used)
        self.used.add(name)
        return name

    def made(self) -> Function:
        f = self.f
        for s in reversed(f.statements):
            self.turn(s)
        makes = [n for n in self.wanted if self.total(n)]
        if not makes:  # as where all that is read is rounded
            makes = self.wanted
            for n in makes:
                left = {self.fresh(_letter(n, i)): (Poly(), size) for i, size in enumerate(self.sizes[n])}
                self.statements.append(_part(tuple(left), Number(0.0), left, self.name(n)))
        if not makes:
            raise f.error(f.at, f"no result of {f.name} has a gradient", "nothing of floating point is read")
        results = tuple(map(self.name, makes))
        statements = self.needed(results)
        statements = [*self.again(_taken(statements)), *statements]
        taken = _taken(statements)
        kept = [self.parameter(t, t) for t in self.sizes if t in taken.difference(p.name for p in f.parameters)]
        kept += [self.parameter(self.name(r), r) for r in f.results if self.name(r) in taken]
        said = set[str]().union(
            *(names(x) for s in statements for x in (s.value, *itertools.chain(*s.ranges.values())))
        )
        inputs = self.inputs(taken, kept, said & f.fixed)
        written = Function(f"{f.name}_grad", (*inputs, *kept), results, tuple(statements), {}, frozenset())
        return parse(show_function(written))

    def inputs(self, taken: set[str], kept: list[Parameter], said: set[str]) -> list[Parameter]:
        """The inputs that are needed: for their elements, as numbers, or because only they tell a size."""
        while True:
            own = [p for p in self.f.parameters if p.name in taken]
            needed = said.union(*(names(d) for p in (*own, *kept) for d in p.dims or ()))
            missing = needed.difference(*(p.defines for p in (*own, *kept)))
            more = next((p.name for p in self.f.parameters if p.name not in taken and p.defines & missing), None)
            if more is None:
                return own
            taken = taken | {more}

    def parameter(self, name: str, like: str) -> Parameter:
        type_, dims = _TYPES[category(self.dtypes[like])], self.sizes[like]
        return Parameter(type_, name, dims if dims or type_ == "int" else None)  # an int alone would be the host's

    def needed(self, results: Iterable[str]) -> list[Statement]:
        """The statements that a result depends on."""
        wanted, kept = set(results), []
        for s in reversed(self.statements):
            if s.target in wanted:
                kept.append(s)
                wanted |= _read(s.value)
        return kept[::-1]

    def again(self, wanted: set[str]) -> list[Statement]:
        """Statements of the forward pass that are cheap to make again."""
        there = set[str]().union(self.f.results, *map(_multiplied, self.f.statements))  # these are in memory anyway
        found: list[Statement] = []
        for s in reversed(self.f.statements):
            if s.target in wanted - there and not s.reduced:
                found.append(s)
                wanted = wanted | _read(s.value)
        return found[::-1]

    def turn(self, s: Statement) -> None:
        """Adds what one statement contributes to the gradients of what it reads."""
        s = replace(s, value=rewrite(s.value, self.apart))
        found = [x for x in reads(s.value) if x.tensor in self.flows]
        target = self.total(s.target) if found and s.target in self.flows else None
        if target is None:
            return
        incoming: Node = _element(target, s.out)
        if s.op in ("min", "max"):
            incoming = self.chosen(s, incoming)
        elif s.op == "*" and s.reduced:
            incoming = Apply("*", (incoming, self.others(s)))
        again = _element(s.target, s.out)
        for read in found:
            steep = slope(s.value, read, self.fail)
            if steep is not None:
                if not s.reduced:  # as exp is its own slope
                    steep = rewrite(steep, lambda x: again if x == s.value else x)
                self.add(s, read, times(incoming, steep))

    def apart(self, x: Node) -> Node:
        """A read for which another stands in where it is outside, as a choice of both."""
        if not isinstance(x, Read) or x.other is None or not _read(x.other) & self.flows:
            return x
        ends = zip(x.indexes, self.sizes[x.tensor], strict=True)
        inside = joined("&&", (c for p, size in ends for c in (Apply(">=", (p, ZERO)), Apply("<", (p, size)))))
        return x if inside is None else Apply("?", (inside, replace(x, other=ZERO), x.other))

    def chosen(self, s: Statement, incoming: Node) -> Node:
        """The gradient where the statement found its extreme first, in the order of the reduced variables; as torch.max."""
        total, flat = Poly.of(1), Poly()
        for name in s.reduced:
            low, high = s.ranges[name]
            flat, total = flat * (high - low) + Poly.of(name) - low, total * (high - low)
        reached = Apply("==", (s.value, _element(s.target, s.out)))
        first = self.fresh(f"first_{s.target}")
        self.statements.append(Statement(first, s.out, "min", Apply("?", (reached, flat, total)), s.ranges))
        return Apply("?", (Apply("==", (_element(first, s.out), flat)), incoming, ZERO))

    def others(self, s: Statement) -> Node:
        """The product of all other factors; exact where some are zero."""
        renamed = {name: self.fresh(f"{name}_") for name in s.reduced}
        same = joined("&&", (Apply("==", (Name(old), Name(new))) for old, new in renamed.items()))
        assert same is not None
        value = Apply("?", (same, ONE, _renamed(s.value, renamed)))
        ends = s.ranges | {new: s.ranges[old] for old, new in renamed.items()}
        rest, left = self.fresh(f"others_{s.target}"), (*s.out, *s.reduced)
        self.statements.append(Statement(rest, left, "*", value, ends))
        return _element(rest, left)

    def add(self, s: Statement, read: Read, value: Node) -> None:
        """A contribution to the gradient of what is read, turned around so that its own elements are on the left."""
        ranges, sizes, left = dict(s.ranges), self.sizes[read.tensor], list[str]()
        for index, size in zip(read.indexes, sizes, strict=True):
            if index.data:
                message = f"{show(read)} is read where data decides: its gradient would be scattered"
                raise self.fail(read.at, message, "use torch there")
            left.append(index.name if ranges.get(index.name) == (Poly(), size) and index.name not in left else "")
        conditions: list[Node] = []
        given: dict[str, Poly] = {}
        for i in (i for i, name in enumerate(left) if not name):
            own = left[i] = self.fresh(_letter(read.tensor, i))
            index = read.indexes[i].replaced(given)
            ranges[own] = (Poly(), sizes[i])
            name = _solvable(index, s, {*left, *given})
            if name is None:
                conditions.append(Apply("==", (index, Name(own))))
                continue
            factor, rest = index.linear(name) or (Poly(), index)
            solved = Poly.of(own) - rest
            if factor.number is not None and factor.number < 0:
                factor, solved = -factor, -solved
            if factor.number != 1:
                conditions.append(Apply("==", (Apply("%", (solved, factor)), ZERO)))
                solved = combine("//", solved, factor)
            low, high = ranges.pop(name)
            given = {n: q.replaced({name: solved}) for n, q in given.items()} | {name: solved}
            along = self.sizes[s.target][s.out.index(name)] if name in s.out else None
            if (low, high) != (Poly(), along) or not _plain_product(value):  # else what is outside counts for nothing
                conditions += [Apply(">=", (solved, low)), Apply("<", (solved, high))]
        value = conditional([_moved(x, given) for x in conditions], _moved(value, given))
        reduced = [n for n in ranges if n not in left and n in names(value)]
        for name, (low, high) in ranges.items():
            if name not in left and name not in reduced:  # the value is the same for all of them
                value = times(value, high - low)
        part = _part(tuple(left), value, {n: ranges[n] for n in (*left, *reduced)})
        self.parts.setdefault(read.tensor, []).append(part)

    def total(self, tensor: str) -> str | None:
        """The name of a tensor's gradient, which is written from its parts now; None if it has none."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts, name = self.parts.pop(tensor, []), self.name(tensor)
        if tensor in self.f.results:
            if parts:
                left = parts[0].out
                parts.append(_part(left, _element(name, left), {n: parts[0].ranges[n] for n in left}))
                name = self.fresh(name)
        elif not parts:
            return None
        if parts:
            self.statements.append(replace(parts[0], target=name) if len(parts) == 1 else self.together(name, parts))
        self.totals[tensor] = name
        return name

    def together(self, name: str, parts: list[Statement]) -> Statement:
        """The sum of several parts; those that are sums by themselves are written first."""
        left, total = parts[0].out, None
        for part in parts:
            value = _renamed(part.value, dict(zip(part.out, left, strict=True)))
            if part.reduced:
                own = self.fresh(name)
                self.statements.append(replace(part, target=own))
                value = _element(own, left)
            total = value if total is None else plus(total, value)
        assert total is not None
        return _part(left, total, {n: parts[0].ranges[n] for n in left}, name)


def _part(left: tuple[str, ...], value: Node, ranges: dict[str, Range], name: str = "") -> Statement:
    """A part of a gradient: a sum over what has a range and is not on the left."""
    return Statement(name, left, "+" if len(ranges) > len(left) else "=", value, ranges)


def _solvable(index: Poly, s: Statement, taken: set[str]) -> str | None:
    """The variable that an index is solved for: one of the left if possible, and with the factor one."""
    ways: list[tuple[bool, bool, str]] = []
    for name in names(index) & set(s.ranges) - taken:
        parts = index.linear(name)
        if parts is not None and parts[0].terms and not names(parts[0]) & set(s.ranges):
            ways.append((name not in s.out, parts[0].number not in (1, -1), name))
    return min(ways)[2] if ways else None


def _element(tensor: str, indexes: Iterable[str]) -> Read:
    return Read(tensor, tuple(map(Poly.of, indexes)))


def _letter(tensor: str, dim: int) -> str:
    return f"{tensor.lower()}{dim}"


def _read(node: Node) -> set[str]:
    return {x.tensor for x in reads(node)}


def _taken(statements: Iterable[Statement]) -> set[str]:
    """The tensors that statements read and do not write."""
    return set[str]().union(*(_read(s.value) for s in statements)) - {s.target for s in statements}


def _multiplied(s: Statement) -> set[str]:
    """The tensors that a sum of products multiplies: a product reads them from memory."""
    match s.op, s.value:
        case "+", Apply("*", args):
            return {x.tensor for x in args if isinstance(x, Read) and names(replace(x, other=None)) & set(s.reduced)}
    return set()


def _plain_product(node: Node) -> bool:
    """Whether nothing in it is other than finite where reads give zero."""
    if isinstance(node, Apply):
        return node.function in ("*", "neg") and all(map(_plain_product, node.args))
    return isinstance(node, (Read, Number))


def _renamed(node: Node, given: Mapping[str, str]) -> Node:
    return replaced(node, {old: Poly.of(new) for old, new in given.items()})


def _moved(node: Node, given: Mapping[str, Poly]) -> Node:
    """With variables solved for; what is then read outside is zero, and counts for nothing."""
    match node:
        case Name(name):
            return given.get(name, node)
        case Read():
            touched = any(names(x) & set(given) for x in node.indexes)
            indexes = tuple(poly(_moved(x, given)) for x in node.indexes)
            other = (ZERO if touched else None) if node.other is None else _moved(node.other, given)
            return replace(node, indexes=indexes, other=other)
    return node.with_parts([_moved(x, given) for x in node.parts])
