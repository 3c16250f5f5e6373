"""Which statements become one kernel: products to the generator, everything else into nests, as few as values allow.

A nest has points, the variables that all its statements share, and runs through the others inside. What it computes for a point
(a row's maximum, its sum) stays in registers and is at hand for the statements behind; what is only computed element by element
is computed again where it is read, and not written at all unless it is a result or a product reads it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from syncscope.kernels.comprehensions.expressions import Apply, Node, Poly, Read, names, reads, replaced, rewrite, walk
from syncscope.kernels.comprehensions.functions import FUNCTIONS
from syncscope.kernels.comprehensions.products import Made, Product, hoisted, separated, with_following
from syncscope.kernels.comprehensions.program import Ints, Program, Step
from syncscope.kernels.comprehensions.residues import taken_apart
from syncscope.kernels.device import is_gpu

_AGAIN = 16  # how often an element that is dear to compute is computed again at most
_DEAR = 4  # operations from which an element is dear
ACROSS = 8  # items that work on a point where its neighbours in memory belong to other points
_FEW = 128  # elements that are worth an item there
SHARE = "share "  # the variable of a group's own part: no name of a user's
_LONG = 1 << 14  # terms from which a reduction with few results is shared among groups


@dataclass(slots=True)
class Nest:
    """Statements over the same points, in order. `values` are what a point has one of; `stored` goes to memory."""

    points: dict[str, int]  # the variables, and how many values each takes
    steps: list[Step] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    shares: int = 1  # groups that each take a part of every reduction; then another nest adds them up

    @property
    def count(self) -> int:
        """How many points there are."""
        return math.prod(self.points.values())

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return tuple(dict.fromkeys(s.target for s in self.steps if s.target in self.stored))

    @property
    def reads(self) -> set[str]:
        """The tensors that it does not have by itself."""
        return {x.tensor for s in self.steps for x in reads(s.value)} - self.values

    def inner(self, step: Step) -> list[str]:
        """The variables that a statement runs through at a point."""
        return [n for n in step.ranges if n not in self.points]

    @property
    def length(self) -> int:
        """The most elements that a statement runs through at a point."""
        return max(s.count(self.inner(s)) for s in self.steps)

    @property
    def reductions(self) -> list[Step]:
        """The statements that reduce."""
        return [s for s in self.steps if s.reduced]


Unit = Product | Nest
Strides = Callable[[str], Ints]  # of a tensor by its name


def lies_along(nest: Nest, strides: Strides) -> bool:
    """Whether neighbours in memory belong to one point; else they belong to neighbouring points."""
    votes = 0
    last = next(reversed(nest.points), None)
    for step in (s for s in nest.steps if nest.inner(s)):
        own = nest.inner(step)
        # an axis of one element tells nothing, and a short one hardly more
        inner = next((n for n in reversed(own) if step.size(n) > 1), own[-1])
        for read in (x for x in reads(step.value) if x.tensor not in nest.values):
            address = Poly()
            for index, stride in zip(read.indexes, strides(read.tensor), strict=False):
                address += index * stride
            if names(address) & set(own) or address.data:  # else it is one element for the whole point
                votes += _step(address, inner) == 1 and step.size(inner) >= ACROSS
                votes -= last is not None and _step(address, last) == 1
    return votes > 0


def _step(address: Poly, name: str) -> int | None:
    found = address.linear(name)
    return found[0].number if found else None


def fused(program: Program, wanted: int, strides: Strides) -> list[Unit]:
    """The units in the order in which they run, temporaries added to the program; `wanted` points fill the device."""
    parts: Made = []
    for s in (step.zero_based() for step in program.steps):
        pieces = [part for r in taken_apart(s) for part in separated(r, program)]
        parts += pieces if any(isinstance(part, Product) for part in pieces) else hoisted(s, program)
    return _Fusion(_with_epilogues(parts, program), program, wanted, strides).units()


def _read(part: Step | Product) -> list[str]:
    """The tensors that a statement reads, in order."""
    return sorted(part.reads) if isinstance(part, Product) else list(dict.fromkeys(x.tensor for x in reads(part.value)))


def _readers(parts: Made) -> dict[str, Made]:
    found: dict[str, Made] = {}
    for part in parts:
        for name in _read(part):
            found.setdefault(name, []).append(part)
    return found


def _with_epilogues(parts: Made, program: Program) -> Made:
    """With each statement that only goes on with a product's elements made in the product's own kernel."""
    readers, times = _readers(parts), Counter(p.target for p in parts)
    first = {p.target: i for i, p in reversed(list(enumerate(parts)))}
    result = list(parts)
    taken_in: list[Step] = []
    for i, part in enumerate(parts):
        taken: Step | Product | None = part
        behind: list[Step] = []
        while isinstance(taken, Product) and taken.target not in program.results:
            match readers.get(taken.target):
                case [Step() as step] if times[taken.target] == times[step.target] == 1:
                    taken = with_following(taken, step, program)
                    behind.append(step)
                case _:
                    break
            if taken is None or (taken.bias and first.get(taken.bias.tensor, -1) >= i):
                break
            passes = step.target not in program.results and all(
                isinstance(r, Step) and not r.reduced for r in readers.get(step.target, [])
            )  # what goes over all elements afterwards may as well begin with this one
            if not (taken.bias and passes):
                result[i] = taken
                taken_in += behind
                behind = []
    return [p for p in result if not any(p is step for step in taken_in)]


class _Fusion:
    def __init__(self, parts: Made, program: Program, wanted: int, strides: Strides) -> None:
        self.parts, self.program, self.wanted, self.strides = parts, program, wanted, strides
        self.readers, self.several = _readers(parts), {t for t, n in Counter(p.target for p in parts).items() if n > 1}
        self.again: dict[str, Step] = {}  # what may be computed again where it is read
        self.virtual: set[str] = set()  # of those, what is not written
        self.pending: dict[str, Step] = {}  # and what is not written yet
        self.made: list[Unit] = []

    def units(self) -> list[Unit]:
        for part in self.parts:
            self.settle(part)
            if isinstance(part, Product):
                self.made.append(part)
            elif part.reduced or part.op != "=" or self.several & {part.target, *_read(part)}:
                self.place(part)
            else:
                self.put_off(part)
        for target in list(self.pending):
            self.write(target)
        self.finish()
        return self.made

    def put_off(self, step: Step) -> None:
        """What is computed element by element is written when it must be, if at all."""
        self.again[step.target] = step
        needed = step.target in self.program.results or not all(
            self.cheap(step, r) for r in self.readers.get(step.target, [])
        )
        if self.stays(step, needed):
            self.place(step)
        elif needed:
            self.pending[step.target] = step
        else:
            self.virtual.add(step.target)

    def settle(self, part: Step | Product) -> None:
        """Writes what was put off and is now read from memory; what is written late joins the kernel that is last then."""
        for name in _read(part):
            if name in self.pending and not self.cheap(self.pending[name], part):
                self.write(name)
            elif name in self.virtual or name in self.pending:
                self.settle(replace(part, value=self.again[name].value) if isinstance(part, Step) else self.again[name])

    def write(self, target: str) -> None:
        step = self.pending.pop(target, None)
        if step is not None:
            self.settle(step)
            self.place(step)

    def stays(self, step: Step, needed: bool) -> bool:
        """Whether the last nest has what it is made of at each point, and it is a value of the point or written anyway."""
        nest = self.made[-1] if self.made else None
        if not isinstance(nest, Nest) or not nest.reductions or (len(step.out) != len(nest.points) and not needed):
            return False
        bound = any(x.tensor in nest.values for x in reads(self.expanded(step.value, nest)))
        return bound and self.joined(nest, step) is not None

    def cheap(self, step: Step, reader: Step | Product) -> bool:
        """Whether a reader may compute the statement's elements itself."""
        if isinstance(reader, Product) or any(x.bounds for x in reads(reader.value) if x.tensor == step.target):
            return False
        work = sum(2 if x.function in FUNCTIONS else 1 for x in walk(step.value) if isinstance(x, Apply))
        return work < _DEAR or reader.count() <= _AGAIN * max(1, step.count(step.out))

    def place(self, step: Step) -> None:
        """Into the last nest, if it can go there, else into one of its own."""
        nest = self.made[-1] if self.made else None
        joined = self.joined(nest, step) if isinstance(nest, Nest) and step.target not in self.several else None
        if joined is None or not isinstance(nest, Nest):
            nest = Nest({n: step.size(n) for n in step.out})
            joined = replace(step, value=self.expanded(step.value, None))
            self.made.append(nest)
        nest.steps.append(joined)
        if step.target not in self.several and all(n in nest.points for n in joined.out):
            nest.values.add(step.target)

    def expanded(self, value: Node, nest: Nest | None) -> Node:
        """With what is computed again written out; what the nest has for the point stays a read of that name."""

        def change(read: Node) -> Node:
            step = self.again.get(read.tensor) if isinstance(read, Read) and not read.bounds else None
            if step is None or not isinstance(read, Read) or (nest is not None and read.tensor in nest.values):
                return read
            here = nest is not None and any(s.target == read.tensor for s in nest.steps)
            if read.tensor not in self.virtual and read.tensor not in self.pending and not here:
                return read
            return self.expanded(replaced(step.value, dict(zip(step.out, read.indexes, strict=True))), nest)

        return rewrite(value, change)

    def joined(self, nest: Nest, step: Step) -> Step | None:
        """The statement in the nest's own variables; None if it cannot be computed point by point there."""
        value = self.expanded(step.value, nest)
        orders = {s.target: s.out for s in nest.steps}
        own = [x for x in reads(value) if x.tensor in nest.values]
        if any(x.tensor in orders for x in reads(value) if x.tensor not in nest.values):
            return None
        places: dict[str, str] = {}  # of the nest's variables, the statement's own
        for read in own:
            for point, index in zip(orders[read.tensor], read.indexes, strict=True):
                if index.name not in step.ranges or places.setdefault(point, index.name) != index.name:
                    return None
        if not own:
            if list(nest.points.values()) != [*map(step.size, step.out)] or (step.reduced and not nest.reductions):
                return None
            places = dict(zip(nest.points, step.out, strict=True))
        sizes = {point: step.size(name) for point, name in places.items()}
        apart = len(set(places.values())) == len(places)
        if sizes != nest.points or not apart or not set(places.values()) <= set(step.out):
            return None
        inner = len(step.out) > len(places)
        length = max(nest.length, step.count(n for n in step.ranges if n not in places.values()))
        few = nest.count < self.wanted and length >= _LONG
        if (step.reduced and inner) or (few and (inner or (step.reduced and own))):
            return None
        renamed = {name: point for point, name in places.items()}
        renamed |= {n: f"{n}_{len(nest.steps)}" for n in step.ranges if n not in renamed}
        return replace(step, value=value, out=tuple(renamed[n] for n in step.out)).replaced(
            {old: Poly.of(new) for old, new in renamed.items()},
            ranges={renamed[n]: ends for n, ends in step.ranges.items()},
        )

    def finish(self) -> None:
        """Decides what is written, and shares long reductions with few results among many groups."""
        wanted = {*self.program.results, *self.several}.union(*(unit.reads for unit in self.made))
        units, self.made = self.made, []
        for unit in units:
            if isinstance(unit, Product):
                self.made.append(unit)
                continue
            unit.stored = {s.target for s in unit.steps} & wanted
            used = unit.stored | {x.tensor for s in unit.steps for x in reads(s.value)}
            unit.steps = [s for s in unit.steps if s.target in used]
            if unit.steps:
                self.made += self.shared(unit)

    def shared(self, nest: Nest) -> Sequence[Nest]:
        """The nest, or one that makes the parts of its reductions and one that puts them together."""
        first = nest.reductions
        depends = any(x.tensor in nest.values for s in first for x in reads(s.value))
        if not first or depends:
            return [nest]
        length, shares = max(s.count(nest.inner(s)) for s in first), 1
        if nest.count < self.wanted and length >= _LONG:
            shares = min(self.wanted * 4 // nest.count, length // 1024, 2048)
        elif is_gpu and not lies_along(nest, self.strides):
            shares = min(self.wanted * 64 // nest.count, length // (ACROSS * _FEW))
        if shares < 2:
            return [nest]
        parts, ending = Nest(dict(nest.points), shares=shares), replace(nest, steps=[])
        points = tuple(map(Poly.of, nest.points))
        for s in nest.steps:
            if not s.reduced:
                ending.steps.append(s)
                continue
            name = self.program.part((*nest.points.values(), shares), s.dtype)
            parts.steps.append(replace(s, target=name, out=tuple(nest.points), left=(*points, Poly.of(SHARE))))
            parts.stored.add(name)
            ranges = {n: s.ranges[n] for n in s.out} | {name: (0, shares)}
            ending.steps.append(replace(s, value=Read(name, (*points, Poly.of(name))), ranges=ranges))
        return [parts, ending]
