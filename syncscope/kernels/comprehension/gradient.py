"""The gradient of a comprehension, as a comprehension: what the chain rule gives, with every read turned around.

A tensor that is read at f(x) gets its gradient at y from all x with f(x) = y. That is solved for one variable of each index: a
gather, which needs no atomics. Statements that only compute element by element are made again; sums and the like are kept from
the forward pass.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch

from syncscope.kernels.comprehension.dtypes import DTYPES, FLOAT, category, kind, settled
from syncscope.kernels.comprehension.expressions import (
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
)
from syncscope.kernels.comprehension.notation import FLOATS, parse
from syncscope.kernels.comprehension.ranges import Range, Ranged, Ranges, infer
from syncscope.kernels.comprehension.shifts import idle
from syncscope.kernels.comprehension.slopes import ONE, ZERO, plus, slope, times
from syncscope.kernels.comprehension.statements import Function, Parameter, Statement, show, show_function
from syncscope.kernels.comprehension.words import NotationError


@dataclass(frozen=True, slots=True)
class Gradient:
    """`function` takes some inputs and kept tensors (`takes`, by name) and gradients of results, and makes those of `makes`."""

    function: Function
    takes: tuple[str, ...]
    makes: tuple[str, ...]  # inputs; the results are called by `gradient_of`
    given: tuple[str, ...]  # results whose gradients it takes


def gradient_of(tensor: str) -> str:
    """The name of a tensor's gradient."""
    return f"d_{tensor}"


def gradient(f: Function, ranges: Ranges, wanted: frozenset[str] | None = None) -> Gradient:
    """The gradient to the inputs `wanted`, all of floating point by default.

    Raises:
        NotationError: a read cannot be turned around, or a function's slope is not known.
    """
    return _Gradient(f, ranges, wanted).made()


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


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a gradient: what is on the left, and the ranges of that and of what is summed over."""

    left: tuple[str, ...]
    value: Node
    ranges: dict[str, Range]

    def statement(self, target: str) -> Statement:
        op = "+" if len(self.ranges) > len(self.left) else "="
        return Statement(target, self.left, op, True, self.value, _clauses(self.ranges))


class _Gradient:
    def __init__(self, f: Function, ranges: Ranges, wanted: frozenset[str] | None) -> None:
        self.f, self.ranges, self.sizes = f, ranges.statements, dict(ranges.sizes)
        self.wanted = [
            p.name for p in f.parameters
            if p.type in FLOATS and p.dims is not None and (wanted is None or p.name in wanted)
        ]  # fmt: skip
        self.fixed = {n for sizes in ranges.sizes.values() for q in sizes for n in q.variables()}
        self.fixed |= {p.name for p in f.parameters if p.dims is None}
        self.statements: list[Statement] = []
        self.parts: dict[str, list[_Part]] = {}
        self.totals: dict[str, str] = {}
        # Only the category of a dtype counts here.
        self.dtypes = {
            p.name: torch.float32 if p.type in FLOATS else DTYPES.get(p.type, torch.int64) for p in f.parameters
        }
        self.flows: set[str] = set(self.wanted)  # tensors that depend on a wanted input
        self.several = {t for t, n in Counter(s.target for s in f.statements).items() if n > 1}
        without = idle(ranges, f.results)
        for ranged in self.ranges:
            s = ranged.statement
            dtype = settled(kind(ranged.value, self.dtypes))
            self.dtypes[s.target] = torch.int64 if s.op in "+*" and category(dtype) != FLOAT else dtype
            if category(dtype) == FLOAT and _read(s.value) & self.flows and s.target not in without:
                self.flows.add(s.target)
        self.used = {n for s in f.statements for n in (s.target, *s.indexes, *names(s.value))} | {
            *self.sizes,
            *self.fixed,
        }
        if taken := sorted(self.used & set(map(gradient_of, self.sizes))):
            raise self.fail(f.at, f"{taken[0]} is the name of a gradient", "choose another name")
        self.used |= set(map(gradient_of, self.sizes))

    def fail(self, at: int, message: str, hint: str) -> NotationError:
        return self.f.error(at, message, f"{hint}, or give `backward=`")

    def fresh(self, wish: str) -> str:
        wishes = itertools.chain([wish], (f"{wish}{i}" for i in itertools.count(2)))
        name = next(n for n in wishes if n not in self.used)
        self.used.add(name)
        return name

    def made(self) -> Gradient:
        self.check_order()
        for ranged in reversed(self.ranges):
            self.turn(ranged)
        makes = [n for n in self.wanted if self.total(n)]
        if not makes:  # as where all that is read is rounded
            makes = self.wanted
            for n in makes:
                left = {self.fresh(_letter(n, i)): (Poly(), size) for i, size in enumerate(self.sizes[n])}
                self.statements.append(_Part(tuple(left), Number(0.0), left).statement(gradient_of(n)))
        if not makes:
            message = f"no result of {self.f.name} has a gradient"
            raise self.f.error(self.f.at, message, "nothing of floating point is read")
        results = tuple(map(gradient_of, makes))
        statements = self.needed(results)
        statements = [*self.again(_taken(statements)), *statements]
        taken = _taken(statements)
        given = tuple(r for r in self.f.results if gradient_of(r) in taken)
        inputs = {p.name for p in self.f.parameters}
        types = ("bool", "int", "float")
        kept = [self.parameter(t, t, types[category(self.dtypes[t])]) for t in self.sizes if t in taken - inputs]
        kept += [self.parameter(gradient_of(r), r, "float") for r in given]
        said = [x for s in statements for x in (s.value, *(end for _, *ends in s.ranges for end in ends))]
        takes = self.inputs(taken, kept, set[str]().union(*map(names, said)) & self.fixed)
        f = parse(show_function(Function(f"{self.f.name}_grad", (*takes, *kept), results, tuple(statements), "")))
        return Gradient(f, tuple(p.name for p in (*takes, *kept[: len(kept) - len(given)])), tuple(makes), given)

    def check_order(self) -> None:
        """Looks for reads of what is added to afterwards: the value at that time is gone when the gradient is made."""
        for i, ranged in enumerate(self.ranges):
            later = {r.statement.target for r in self.ranges[i + 1 :]} & self.several & self.flows
            for x in reads(ranged.value):
                if x.tensor in later:
                    raise self.fail(
                        x.at, f"{x.tensor} is read here, and written again behind", "give each its own name"
                    )

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

    def parameter(self, name: str, like: str, type_: str) -> Parameter:
        dims = tuple(q.node() for q in self.sizes[like])
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
        there = self.several.union(self.f.results, *map(_multiplied, self.ranges))  # these are in memory anyway
        found: list[Statement] = []
        for ranged in reversed(self.ranges):
            s = ranged.statement
            if s.target in wanted - there and not ranged.reduced:
                found.append(replace(s, value=ranged.value, ranges=_clauses(ranged.ranges), exists=()))
                wanted = wanted | _read(ranged.value)
        return found[::-1]

    def turn(self, ranged: Ranged) -> None:
        """Adds what one statement contributes to the gradients of what it reads."""
        s = ranged.statement
        found = [x for x in reads(ranged.value) if x.tensor in self.flows]
        target = self.total(s.target) if found and s.target in self.flows else None
        if target is None:
            return
        if s.target in self.several and s.op not in "+=":
            message = f"{s.target} is written more than once, and not by sums alone: that has no gradient here"
            raise self.fail(s.at, message, "give each its own name")
        incoming: Node = _element(target, s.indexes)
        if s.op in ("min", "max"):
            incoming = self.chosen(ranged, incoming)
        elif s.op == "*" and ranged.reduced:
            incoming = Apply("*", (incoming, self.others(ranged)))
        for read in found:
            steep = slope(ranged.value, read, self.fail)
            if steep is not None:
                if not ranged.reduced and s.target not in self.several:  # as exp is its own slope
                    again = _element(s.target, s.indexes)
                    steep = rewrite(steep, lambda x: again if x == ranged.value else x)  # noqa: B023
                self.add(ranged, read, times(incoming, steep))

    def chosen(self, ranged: Ranged, incoming: Node) -> Node:
        """The gradient where the statement found its extreme first, in the order of the reduced variables; as torch.max."""
        s = ranged.statement
        total, flat = Poly.of(1), Poly()
        for name in ranged.reduced:
            low, high = ranged.ranges[name]
            flat, total = flat * (high - low) + Poly.of(name) - low, total * (high - low)
        first = self.fresh(f"first_{s.target}")
        reached = Apply("==", (ranged.value, _element(s.target, s.indexes)))
        value = Apply("?", (reached, flat.node(), total.node()))
        self.statements.append(Statement(first, s.indexes, "min", True, value, _clauses(ranged.ranges)))
        return Apply("?", (Apply("==", (_element(first, s.indexes), flat.node())), incoming, ZERO))

    def others(self, ranged: Ranged) -> Node:
        """The product of all other factors; exact where some are zero."""
        s = ranged.statement
        renamed = {name: self.fresh(f"{name}_") for name in ranged.reduced}
        same = joined("&&", (Apply("==", (Name(old), Name(new))) for old, new in renamed.items()))
        assert same is not None
        value = Apply("?", (same, ONE, _renamed(ranged.value, renamed)))
        ends = ranged.ranges | {renamed[n]: ranged.ranges[n] for n in renamed}
        rest, indexes = self.fresh(f"others_{s.target}"), (*s.indexes, *ranged.reduced)
        self.statements.append(Statement(rest, indexes, "*", True, value, _clauses(ends)))
        return _element(rest, indexes)

    def add(self, ranged: Ranged, read: Read, value: Node) -> None:
        """A contribution to the gradient of what is read, turned around so that its own elements are on the left."""
        s, ranges, sizes = ranged.statement, dict(ranged.ranges), self.sizes[read.tensor]
        left: list[str] = []
        for index, size in zip(read.polys, sizes, strict=True):
            if index.parts:
                message = f"{show(read)} is read where data decides: its gradient would be scattered"
                raise self.fail(read.at, message, "use torch there")
            whole = (n for n in ranges if index == Poly.of(n) and ranges[n] == (Poly(), size) and n not in left)
            left.append(next(whole, ""))
        conditions: list[Node] = []
        given: dict[str, Poly] = {}
        for i in (i for i, name in enumerate(left) if not name):
            own = left[i] = self.fresh(_letter(read.tensor, i))
            index = read.polys[i].replaced(given)
            ranges[own] = (Poly(), sizes[i])
            name = self.solvable(index, ranged, {*left, *given})
            if name is None:
                conditions.append(Apply("==", (index.node(), Name(own))))
                continue
            factor, rest = index.linear(name) or (Poly(), index)
            solved = Poly.of(own) - rest
            if factor.number is not None and factor.number < 0:
                factor, solved = -factor, -solved
            if factor.number != 1:
                conditions.append(Apply("==", (Apply("%", (solved.node(), factor.node())), ZERO)))
                solved = combine("/", solved, factor)
            low, high = ranges.pop(name)
            given = {n: q.replaced({name: solved}) for n, q in given.items()} | {name: solved}
            along = self.sizes[s.target][s.indexes.index(name)] if name in s.indexes else None
            if (low, high) != (Poly(), along) or not _plain_product(value):  # else what is outside counts for nothing
                conditions += [Apply(">=", (solved.node(), low.node())), Apply("<", (solved.node(), high.node()))]
        value = conditional([_moved(x, given) for x in conditions], _moved(value, given))
        reduced = [n for n in ranges if n not in left and n in names(value)]
        for name, (low, high) in ranges.items():
            if name not in left and name not in reduced:  # the value is the same for all of them
                value = times(value, (high - low).node())
        part = _Part(tuple(left), value, {n: ranges[n] for n in (*left, *reduced)})
        self.parts.setdefault(read.tensor, []).append(part)

    def solvable(self, index: Poly, ranged: Ranged, taken: set[str]) -> str | None:
        """The variable that an index is solved for: one of the left if possible, and with the factor one."""
        ways: list[tuple[bool, bool, str]] = []
        for name in index.variables() & set(ranged.ranges) - taken:
            parts = index.linear(name)
            if parts is not None and parts[0].terms and not parts[0].variables() & set(ranged.ranges):
                ways.append((name not in ranged.statement.indexes, parts[0].number not in (1, -1), name))
        return min(ways)[2] if ways else None

    def total(self, tensor: str) -> str | None:
        """The name of a tensor's gradient, which is written from its parts now; None if it has none."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts, name = self.parts.pop(tensor, []), gradient_of(tensor)
        if tensor in self.f.results:
            if parts:
                left = parts[0].left
                parts.append(_Part(left, _element(name, left), {n: parts[0].ranges[n] for n in left}))
                name = self.fresh(name)
        elif not parts:
            return None
        if parts:
            self.statements.append(parts[0].statement(name) if len(parts) == 1 else self.together(name, parts))
        self.totals[tensor] = name
        return name

    def together(self, name: str, parts: list[_Part]) -> Statement:
        """The sum of several parts; those that are sums by themselves are written first."""
        left, total = parts[0].left, None
        for part in parts:
            value = _renamed(part.value, dict(zip(part.left, left, strict=True)))
            if len(part.ranges) > len(left):
                own = self.fresh(name)
                self.statements.append(part.statement(own))
                value = _element(own, left)
            total = value if total is None else plus(total, value)
        assert total is not None
        return Statement(name, left, "=", True, total, _clauses({n: parts[0].ranges[n] for n in left}))


def _clauses(ranges: Mapping[str, Range]) -> tuple[tuple[str, Node, Node], ...]:
    """Ranges as they are written."""
    return tuple((name, low.node(), high.node()) for name, (low, high) in ranges.items())


def _element(tensor: str, indexes: Iterable[str]) -> Read:
    return Read(tensor, tuple(map(Name, indexes)))


def _letter(tensor: str, dim: int) -> str:
    return f"{tensor.lower()}{dim}"


def _read(node: Node) -> set[str]:
    return {x.tensor for x in reads(node)}


def _taken(statements: Iterable[Statement]) -> set[str]:
    """The tensors that statements read and do not write."""
    return set[str]().union(*(_read(s.value) for s in statements)) - {s.target for s in statements}


def _multiplied(ranged: Ranged) -> set[str]:
    """The tensors that a sum of products multiplies: a product reads them from memory."""
    match ranged.statement.op, ranged.value:
        case "+", Apply("*", args):
            return {
                x.tensor for x in args if isinstance(x, Read) and names(replace(x, other=None)) & set(ranged.reduced)
            }
    return set()


def _plain_product(node: Node) -> bool:
    """Whether nothing in it is other than finite where reads give zero."""
    if isinstance(node, Apply):
        return node.function in ("*", "neg") and all(map(_plain_product, node.args))
    return isinstance(node, (Read, Number))


def _renamed(node: Node, given: Mapping[str, str]) -> Node:
    return rewrite(node, lambda x: Name(given.get(x.name, x.name)) if isinstance(x, Name) else x)


def _moved(node: Node, given: Mapping[str, Poly]) -> Node:
    """With variables solved for; what is then read outside is zero, and counts for nothing."""
    match node:
        case Name():
            return replaced(node, given)
        case Read():
            touched = any(names(x) & set(given) for x in node.indexes)
            indexes = tuple(poly(_moved(x, given)).node() for x in node.indexes)
            other = (ZERO if touched else None) if node.other is None else _moved(node.other, given)
            return replace(node, indexes=indexes, other=other)
    return node.with_parts([_moved(x, given) for x in node.parts])
