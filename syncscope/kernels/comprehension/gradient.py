"""The gradient of a comprehension, as a comprehension: what the chain rule gives, with every read turned around.

A tensor that is read at f(x) gets its gradient at y from all x with f(x) = y. That is solved for one variable of each index: a
gather, which needs no atomics. Statements that only compute element by element are made again; sums and the like are kept from
the forward pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from syncscope.kernels.comprehension.algebra import Poly, poly
from syncscope.kernels.comprehension.derived import Part, clauses, floats, moved, multiplied, plain_product, truths
from syncscope.kernels.comprehension.notation import FLOATS, parse
from syncscope.kernels.comprehension.ranges import Ranged, Ranges
from syncscope.kernels.comprehension.shifts import idle
from syncscope.kernels.comprehension.slopes import ONE, ZERO, times
from syncscope.kernels.comprehension.slopes import slope as slope_of
from syncscope.kernels.comprehension.tree import (
    Apply,
    Function,
    Name,
    Node,
    Number,
    Parameter,
    Read,
    Statement,
    names,
    rewrite,
    show,
    show_function,
    walk,
)  # fmt: skip
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


class _Gradient:
    def __init__(self, f: Function, ranges: Ranges, wanted: frozenset[str] | None) -> None:
        self.f, self.sizes = f, ranges.sizes
        self.wanted = [
            p.name for p in f.parameters
            if p.type in FLOATS and p.dims is not None and (wanted is None or p.name in wanted)
        ]  # fmt: skip
        self.kinds = {p.name: "float" if p.type in FLOATS else p.type for p in f.parameters}
        self.fixed = {n for sizes in ranges.sizes.values() for q in sizes for n in q.variables()}
        self.fixed |= {p.name for p in f.parameters if p.dims is None}
        self.statements: list[Statement] = []
        self.parts: dict[str, list[Part]] = {}
        self.totals: dict[str, str] = {}
        self.ranges = ranges
        self.used = {
            n
            for s in f.statements
            for n in (s.target, *(x.name for x in walk(s.value) if isinstance(x, Name)), *s.indexes)
        }
        self.used |= {p.name for p in f.parameters} | self.fixed
        self.flows: set[str] = set(self.wanted)  # tensors that depend on a wanted input
        without = idle(ranges, f.results)
        written: dict[str, int] = {}
        for ranged in ranges.statements:
            s = ranged.statement
            written[s.target] = written.get(s.target, 0) + 1
            self.kinds[s.target] = (
                "float" if floats(s.value, self.kinds) else "int" if s.op in "+*" or not truths(s.value) else "bool"
            )
            reads = {x.tensor for x in walk(s.value) if isinstance(x, Read)}
            if self.kinds[s.target] == "float" and reads & self.flows and s.target not in without:
                self.flows.add(s.target)
        self.several = {t for t, n in written.items() if n > 1}
        if taken := sorted(self.used & {gradient_of(t) for t in self.sizes}):
            raise self.fail(f.at, f"{taken[0]} is the name of a gradient", "choose another name")
        self.used |= {gradient_of(t) for t in self.sizes}
        self.unfinished()

    def made(self) -> Gradient:
        for ranged in reversed(self.ranges.statements):
            self.turn(ranged)
        makes = [n for n in self.wanted if self.total(n)] or [n for n in self.wanted if self.nothing(n)]
        if not makes:
            raise NotationError(
                self.f.text,
                self.f.at,
                f"no result of {self.f.name} has a gradient",
                "nothing of floating point is read",
            )
        results = tuple(map(gradient_of, makes))
        statements = self.needed(self.statements, set(results))
        written = {s.target for s in statements}
        reads = {x.tensor for s in statements for x in walk(s.value) if isinstance(x, Read)} - written
        statements = [*self.again(reads), *statements]
        written = {s.target for s in statements}
        reads = {x.tensor for s in statements for x in walk(s.value) if isinstance(x, Read)} - written
        inputs = {p.name: p for p in self.f.parameters}
        given = tuple(r for r in self.f.results if gradient_of(r) in reads)
        kept = [self.parameter(t, t, self.kinds[t]) for t in self.sizes if t in reads and t not in inputs]
        kept += [self.parameter(gradient_of(r), r, "float") for r in given]
        said = [x for s in statements for x in (s.value, *(end for r in s.ranges for end in r[1:]))]
        takes = self.inputs(reads, kept, {n for x in said for n in names(x)} & self.fixed)
        f = Function(f"{self.f.name}_grad", (*takes, *kept), results, tuple(statements), "")
        text = show_function(f)
        return Gradient(
            parse(text), tuple(p.name for p in f.parameters[: len(f.parameters) - len(given)]), tuple(makes), given
        )

    def inputs(self, reads: set[str], kept: list[Parameter], said: set[str]) -> list[Parameter]:
        """The inputs that are needed: for their elements, as numbers, or because only they tell a size."""
        taken = {p.name for p in self.f.parameters if p.name in reads}
        while True:
            now = [*(p for p in self.f.parameters if p.name in taken), *kept]
            known = {d.name for p in now for d in p.dims or () if isinstance(d, Name)} | {
                p.name for p in now if p.dims is None
            }
            missing = (said | {n for p in now for d in p.dims or () for n in names(d)}) - known
            more = next((p for p in self.f.parameters if p.name not in taken and _tells(p) & missing), None)
            if more is None:
                return now[: len(now) - len(kept)]
            taken.add(more.name)

    def unfinished(self) -> None:
        """Looks for reads of what is added to afterwards: the value at that time is gone when the gradient is made."""
        for i, ranged in enumerate(self.ranges.statements):
            later = {r.statement.target for r in self.ranges.statements[i + 1 :]}
            for x in walk(ranged.value):
                if isinstance(x, Read) and x.tensor in later & self.several & self.flows:
                    raise self.fail(
                        x.at, f"{x.tensor} is read here, and written again behind", "give each its own name"
                    )

    def parameter(self, name: str, like: str, kind: str) -> Parameter:
        dims = tuple(q.node() for q in self.sizes[like])
        return Parameter(kind, name, dims if dims or kind == "int" else None)  # an int alone would be the host's

    def needed(self, statements: list[Statement], wanted: set[str]) -> list[Statement]:
        """Those that something wanted depends on."""
        kept: list[Statement] = []
        for s in reversed(statements):
            if s.target in wanted:
                kept.append(s)
                wanted |= {x.tensor for x in walk(s.value) if isinstance(x, Read)}
        return kept[::-1]

    def again(self, reads: set[str]) -> list[Statement]:
        """Statements of the forward pass that are cheap to make again."""
        found: list[Statement] = []
        given = {
            *self.f.results,
            *(x for r in self.ranges.statements for x in multiplied(r)),
        }  # these are in memory anyway
        for ranged in reversed(self.ranges.statements):
            s = ranged.statement
            if s.target in reads and not ranged.reduced and s.target not in self.several | given:
                found.append(replace(s, value=ranged.value, ranges=clauses(ranged.ranges), exists=()))
                reads = reads | {x.tensor for x in walk(ranged.value) if isinstance(x, Read)}
        return found[::-1]

    def turn(self, ranged: Ranged) -> None:
        """Adds what one statement contributes to the gradients of what it reads."""
        s = ranged.statement
        reads = [
            x for x in dict.fromkeys(x for x in walk(ranged.value) if isinstance(x, Read)) if x.tensor in self.flows
        ]
        target = self.total(s.target) if reads and s.target in self.flows else None
        if target is None:
            return
        if s.target in self.several and s.op not in "+=":
            message = f"{s.target} is written more than once, and not by sums alone: that has no gradient here"
            raise self.fail(s.at, message, "give each its own name")
        incoming: Node = Read(target, tuple(map(Name, s.indexes)))
        if s.op in ("min", "max"):
            incoming = self.chosen(ranged, incoming)
        elif s.op == "*" and ranged.reduced:
            incoming = Apply("*", (incoming, self.others(ranged)))
        for read in reads:
            slope = slope_of(ranged.value, read, self.fail)
            if slope is not None:
                if not ranged.reduced and s.target not in self.several:  # as exp is its own slope
                    whole, again = ranged.value, Read(s.target, tuple(map(Name, s.indexes)))
                    slope = rewrite(slope, lambda x: again if x == whole else x)  # noqa: B023
                self.add(ranged, read, times(incoming, slope))

    def fail(self, at: int, message: str, hint: str) -> NotationError:
        return NotationError(self.f.text, at, message, f"{hint}, or give `backward=`")

    def fresh(self, wish: str) -> str:
        name = next(
            n for n in itertools.chain([wish], (f"{wish}{i}" for i in itertools.count(2))) if n not in self.used
        )
        self.used.add(name)
        return name

    def chosen(self, ranged: Ranged, incoming: Node) -> Node:
        """The gradient where the statement found its extreme first, in the order of the reduced variables; as torch.max."""
        s = ranged.statement
        place: Node = ZERO
        total = Poly.of(1)
        flat = Poly()
        for name in ranged.reduced:
            low, high = ranged.ranges[name]
            flat = flat * (high - low) + Poly.of(name) - low
            total = total * (high - low)
        place = flat.node()
        first = self.fresh(f"first_{s.target}")
        extreme = Read(s.target, tuple(map(Name, s.indexes)))
        value = Apply("?", (Apply("==", (ranged.value, extreme)), place, total.node()))
        self.statements.append(Statement(first, s.indexes, "min", True, value, clauses(ranged.ranges)))
        self.sizes = self.sizes | {first: self.sizes[s.target]}
        here = Apply("==", (Read(first, tuple(map(Name, s.indexes))), place))
        return Apply("?", (here, incoming, ZERO))

    def others(self, ranged: Ranged) -> Node:
        """The product of all other factors; exact where some are zero."""
        s = ranged.statement
        renamed = {name: self.fresh(f"{name}_") for name in ranged.reduced}
        value = rewrite(
            ranged.value, lambda x: Name(renamed[x.name]) if isinstance(x, Name) and x.name in renamed else x
        )
        same: Node | None = None
        for old, new in renamed.items():
            one = Apply("==", (Name(old), Name(new)))
            same = one if same is None else Apply("&&", (same, one))
        assert same is not None
        rest = self.fresh(f"others_{s.target}")
        ends = ranged.ranges | {renamed[n]: ranged.ranges[n] for n in renamed}
        indexes = (*s.indexes, *ranged.reduced)
        self.statements.append(Statement(rest, indexes, "*", True, Apply("?", (same, ONE, value)), clauses(ends)))
        return Read(rest, tuple(map(Name, indexes)))

    def add(self, ranged: Ranged, read: Read, value: Node) -> None:
        """A contribution to the gradient of what is read, turned around so that its own elements are on the left."""
        s, ranges = ranged.statement, dict(ranged.ranges)
        left: list[str] = []
        conditions: list[Node] = []
        given: dict[str, Poly] = {}
        rest: list[tuple[int, Poly]] = []
        for i, (node, size) in enumerate(zip(read.indexes, self.sizes[read.tensor], strict=True)):
            index = poly(node)
            if index.values():
                raise self.fail(
                    read.at,
                    f"{show(read)} is read where data decides: its gradient would be scattered",
                    "use torch there",
                )
            name = next((n for n in ranges if index == Poly.of(n) and ranges[n] == (Poly(), size)), None)
            if name is not None and name not in left:
                left.append(name)
            else:
                left.append("")
                rest.append((i, index))
        for i, index in rest:
            own = left[i] = self.fresh(_letter(read.tensor, i))
            index = index.replaced(given)
            ranges[own] = (Poly(), self.sizes[read.tensor][i])
            name = self.solvable(index, ranged, left, given)
            factor, without = (index.linear(name) if name else None) or (Poly(), index)
            difference = Poly.of(own) - without
            if name is None:
                conditions.append(Apply("==", (index.node(), Name(own))))
                continue
            if factor.number is not None and factor.number < 0:
                factor, difference = -factor, -difference
            solved = difference
            if factor.number != 1:
                conditions.append(Apply("==", (Apply("%", (difference.node(), factor.node())), ZERO)))
                solved = poly(Apply("/", (difference.node(), factor.node())))
            low, high = ranges.pop(name)
            given = {n: q.replaced({name: solved}) for n, q in given.items()} | {name: solved}
            on_left = (
                name in s.indexes
                and plain_product(value)
                and (low, high) == (Poly(), self.sizes[s.target][s.indexes.index(name)])
            )
            if not on_left:
                conditions += [Apply(">=", (solved.node(), low.node())), Apply("<", (solved.node(), high.node()))]
        value = moved(value, given)
        condition: Node | None = None
        for one in conditions:
            one = moved(one, given)
            condition = one if condition is None else Apply("&&", (condition, one))
        if condition is not None:
            value = Apply("?", (condition, value, ZERO))
        self.contribute(read.tensor, tuple(left), value, ranges)

    def solvable(self, index: Poly, ranged: Ranged, left: list[str], given: Mapping[str, Poly]) -> str | None:
        """The variable that an index is solved for: one of the left if possible, and with the factor one."""
        s = ranged.statement
        best: tuple[bool, bool, str] | None = None
        for name in ranged.ranges:
            parts = index.linear(name) if name not in left and name not in given and name in index.variables() else None
            if parts is None or not parts[0].terms or parts[0].variables() & set(ranged.ranges):
                continue
            key = (name not in s.indexes, parts[0].number not in (1, -1), name)
            best = key if best is None or key < best else best
        return best[2] if best else None

    def contribute(
        self, tensor: str, left: tuple[str, ...], value: Node, ranges: Mapping[str, tuple[Poly, Poly]]
    ) -> None:
        """Notes a part of a tensor's gradient; `written` puts the parts together."""
        reduced = [n for n in ranges if n not in left and n in names(value)]
        for name in ranges:
            if name not in left and name not in reduced:  # the value is the same for all of them
                low, high = ranges[name]
                value = times(value, (high - low).node())
        part = Part(left, value, {n: ranges[n] for n in (*left, *reduced)})
        self.parts.setdefault(tensor, []).append(part)

    def total(self, tensor: str) -> str | None:
        """The name of a tensor's gradient, which is written from its parts now; None if it has none."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts, name = self.parts.pop(tensor, []), gradient_of(tensor)
        if tensor in self.f.results:
            if parts:
                left = parts[0].left
                parts.append(Part(left, Read(name, tuple(map(Name, left))), {n: parts[0].ranges[n] for n in left}))
                name = self.fresh(name)
        elif not parts:
            return None
        if len(parts) == 1:
            self.statements.append(parts[0].statement(name))
        elif parts:
            self.statements.append(self.together(name, parts))
        self.totals[tensor] = name
        return name

    def nothing(self, tensor: str) -> bool:
        """Writes a gradient of zeros, as where all that is read is rounded."""
        left = tuple(self.fresh(_letter(tensor, i)) for i in range(len(self.sizes[tensor])))
        ranges = {n: (Poly(), size) for n, size in zip(left, self.sizes[tensor], strict=True)}
        self.statements.append(Statement(gradient_of(tensor), left, "=", True, Number(0.0), clauses(ranges)))
        return True

    def together(self, name: str, parts: list[Part]) -> Statement:
        """The sum of several parts; those that are sums by themselves are written first."""
        left, total = parts[0].left, None
        for part in parts:
            given = dict(zip(part.left, left, strict=True))
            if part.reduced:
                own = self.fresh(name)
                self.statements.append(part.statement(own))
                value: Node = Read(own, tuple(map(Name, left)))
            else:
                value = _renamed(part.value, given)
            total = value if total is None else _plus(total, value)
        assert total is not None
        return Statement(name, left, "=", True, total, clauses({n: parts[0].ranges[n] for n in left}))


def _renamed(node: Node, given: Mapping[str, str]) -> Node:
    return rewrite(node, lambda x: Name(given.get(x.name, x.name)) if isinstance(x, Name) else x)


def _plus(a: Node, b: Node) -> Node:
    return Apply("-", (a, b.args[0])) if isinstance(b, Apply) and b.function == "neg" else Apply("+", (a, b))


def _tells(p: Parameter) -> set[str]:
    """The sizes and numbers that a parameter defines."""
    return {p.name} if p.dims is None else {d.name for d in p.dims if isinstance(d, Name)}


def _letter(tensor: str, dim: int) -> str:
    return f"{tensor.lower()}{dim}"
