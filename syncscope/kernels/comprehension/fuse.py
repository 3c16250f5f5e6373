"""Which statements become one kernel: products to the generator, everything else into nests, as few as values allow.

A nest has points, the variables that all its statements share, and runs through the others inside. What it computes for a point
(a row's maximum, its sum) stays in registers and is at hand for the statements behind; what is only computed element by element
is computed again where it is read, and not written at all unless it is a result or a product reads it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from syncscope.kernels.comprehension.algebra import Poly
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.products import Product, hoisted, separated, with_following
from syncscope.kernels.comprehension.program import Load, Program, Step, changed, each, loads, zero_based
from syncscope.kernels.comprehension.residues import taken_apart
from syncscope.kernels.comprehension.tree import Apply, Node
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
        n = 1
        for size in self.points.values():
            n *= size
        return n

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return tuple(dict.fromkeys(s.target for s in self.steps if s.target in self.stored))

    @property
    def reads(self) -> set[str]:
        """The tensors that it does not have by itself."""
        return {x.tensor for s in self.steps for x in loads(s.value)} - self.values

    def inner(self, step: Step) -> int:
        """How many elements a statement runs through at a point."""
        return step.count([n for n in step.ranges if n not in self.points])

    @property
    def length(self) -> int:
        """The most elements that a statement runs through at a point."""
        return max(map(self.inner, self.steps))

    @property
    def reductions(self) -> list[Step]:
        """The statements that reduce."""
        return [s for s in self.steps if s.reduced]


Unit = Product | Nest
Strides = Callable[[str], tuple[int, ...]]  # of a tensor by its name


def lies_along(nest: Nest, strides: Strides) -> bool:
    """Whether neighbours in memory belong to one point; else they belong to neighbouring points."""
    votes = 0
    last = next(reversed(nest.points), None)
    for step in nest.steps:
        own = [n for n in step.ranges if n not in nest.points]
        for load in loads(step.value) if own else ():
            if load.tensor in nest.values:
                continue
            address = Poly()
            for index, stride in zip(load.at_, strides(load.tensor), strict=False):
                address += index * stride
            if not address.variables() & set(own) and not address.values():
                continue  # one element for the whole point
            # an axis of one element tells nothing, and a short one hardly more
            inner = next((n for n in reversed(own) if step.size(n) > 1), own[-1])
            votes += _step(address, inner) == 1 and step.size(inner) >= ACROSS
            votes -= last is not None and _step(address, last) == 1
    return votes > 0


def _step(address: Poly, name: str) -> int | None:
    found = address.linear(name)
    return found[0].number if found else None


def fused(program: Program, wanted: int, strides: Strides) -> list[Unit]:
    """The units in the order in which they run, temporaries added to the program; `wanted` points fill the device."""
    fresh = (f"{program.name}_part{i}" for i in itertools.count(1))
    parts: list[Step | Product] = []
    for s in map(zero_based, program.steps):
        pieces = [part for r in taken_apart(s) for part in separated(r, program, fresh)]
        parts += pieces if any(isinstance(part, Product) for part in pieces) else hoisted(s, program, fresh)
    parts = _with_epilogues(parts, program)
    return _Fusion(program, wanted, strides).units(parts, fresh)


def _readers(parts: Sequence[Step | Product]) -> dict[str, list[Step | Product]]:
    found: dict[str, list[Step | Product]] = {}
    for part in parts:
        for name in _read(part):
            found.setdefault(name, []).append(part)
    return found


def _read(part: Step | Product) -> list[str]:
    tensors = sorted(part.reads) if isinstance(part, Product) else [x.tensor for x in loads(part.value)]
    return list(dict.fromkeys(tensors))


def _target(part: Step | Product) -> str:
    return part.name if isinstance(part, Product) else part.target


def _with_epilogues(parts: list[Step | Product], program: Program) -> list[Step | Product]:
    """With each statement that only goes on with a product's elements made in the product's own kernel."""
    readers, targets = _readers(parts), [_target(p) for p in parts]
    result = list(parts)
    taken_in: set[int] = set()
    for i, part in enumerate(parts):
        if not isinstance(part, Product) or part.name in program.results or targets.count(part.name) > 1:
            continue
        following = readers.get(part.name, [])
        if len(following) == 1 and isinstance(following[0], Step) and targets.count(following[0].target) == 1:
            step = following[0]
            taken = with_following(part, step, program)
            passes = step.target not in program.results and all(
                isinstance(r, Step) and not r.reduced for r in readers.get(step.target, [])
            )  # what goes over all elements afterwards may as well begin with this one
            if taken is not None and not (taken.bias is not None and passes):
                written = next(
                    (j for j, p in enumerate(parts) if taken.bias is not None and _target(p) == taken.bias.tensor), -1
                )
                if written < i:
                    result[i] = taken
                    taken_in.add(id(step))
    return [p for p in result if id(p) not in taken_in]


class _Fusion:
    def __init__(self, program: Program, wanted: int, strides: Strides) -> None:
        self.program, self.wanted, self.strides = program, wanted, strides
        self.wide = is_gpu
        self.again: dict[str, Step] = {}  # what may be computed again where it is read
        self.virtual: set[str] = set()  # of those, what is not written
        self.pending: dict[str, Step] = {}  # and what is not written yet
        self.made: list[Unit] = []

    def units(self, parts: list[Step | Product], fresh: Iterator[str]) -> list[Unit]:
        readers, targets = _readers(parts), [_target(p) for p in parts]
        self.several = {t for t in targets if targets.count(t) > 1}
        for part in parts:
            self.settle(part)
            if isinstance(part, Product):
                self.made.append(part)
                continue
            steady = not self.several & {part.target, *(x.tensor for x in loads(part.value))}
            if part.reduced or part.op != "=" or not steady:
                self.place(part)
                continue
            self.again[part.target] = part
            cheap = all(self.cheap(part, r) for r in readers.get(part.target, []))
            needed = not cheap or part.target in self.program.results
            if self.stays(part, needed):
                self.place(part)
            elif needed:
                self.pending[part.target] = part
            else:
                self.virtual.add(part.target)
        for target in list(self.pending):
            self.write(target)
        self.finish(fresh)
        return self.made

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
        bound = any(x.tensor in nest.values for x in loads(self.expanded(step.value, nest)))
        return bound and self.joined(nest, step) is not None

    def cheap(self, step: Step, reader: Step | Product) -> bool:
        """Whether a reader may compute the statement's elements itself."""
        if isinstance(reader, Product):
            return False
        if any(any(x.checked) for x in loads(reader.value) if x.tensor == step.target):
            return False
        work = sum(2 if x.function in FUNCTIONS else 1 for x in each(step.value) if isinstance(x, Apply))
        return work < _DEAR or reader.count([*reader.ranges]) <= _AGAIN * max(1, step.count(step.out))

    def place(self, step: Step) -> None:
        """Into the last nest, if it can go there, else into one of its own."""
        if self.made and isinstance(nest := self.made[-1], Nest) and step.target not in self.several:
            joined = self.joined(nest, step)
            if joined is not None:
                nest.steps.append(joined)
                if all(n in nest.points for n in joined.out):
                    nest.values.add(step.target)
                return
        nest = Nest({n: step.size(n) for n in step.out})
        nest.steps.append(replace(step, value=self.expanded(step.value, None)))
        if step.target not in self.several:
            nest.values.add(step.target)
        self.made.append(nest)

    def expanded(self, value: Node, nest: Nest | None) -> Node:
        """With what is computed again written out; what the nest has for the point stays a load of that name."""

        def change(load: Load) -> Node:
            step = self.again.get(load.tensor)
            if step is None or any(load.checked) or (nest is not None and load.tensor in nest.values):
                return load
            here = nest is not None and any(s.target == load.tensor for s in nest.steps)
            if load.tensor not in self.virtual and load.tensor not in self.pending and not here:
                return load
            given = dict(zip(step.out, load.at_, strict=True))
            return self.expanded(changed(step.value, given), nest)

        return changed(value, {}, change)

    def joined(self, nest: Nest, step: Step) -> Step | None:
        """The statement in the nest's own variables; None if it cannot be computed point by point there."""
        value = self.expanded(step.value, nest)
        here = {s.target for s in nest.steps}
        places: dict[str, str] = {}  # of the nest's variables, the statement's own
        bound = False
        for load in loads(value):
            if load.tensor not in nest.values:
                if load.tensor in here:
                    return None
                continue
            bound = True
            for point, index in zip(self._order(nest, load.tensor), load.at_, strict=True):
                name = next((n for n in step.ranges if index == Poly.of(n)), None)
                if name is None or places.setdefault(point, name) != name:
                    return None
        if not bound:
            if list(nest.points.values()) != [step.size(n) for n in step.out] or (step.reduced and not nest.reductions):
                return None
            places = dict(zip(nest.points, step.out, strict=True))
        if (
            set(places) != set(nest.points)
            or len(set(places.values())) != len(places)
            or not set(places.values()) <= set(step.out)
        ):
            return None
        if any(step.size(places[p]) != size for p, size in nest.points.items()):
            return None
        inner = len(step.out) > len(places)
        length = max(nest.length, step.count([n for n in step.ranges if n not in places.values()]))
        few = nest.count < self.wanted and length >= _LONG
        if (step.reduced and inner) or (few and (inner or (step.reduced and bound))):
            return None
        number = len(nest.steps)
        renamed = {own: point for point, own in places.items()}
        renamed |= {n: f"{n}_{number}" for n in step.ranges if n not in renamed}
        given = {old: Poly.of(new) for old, new in renamed.items()}
        return replace(
            step, value=changed(value, given), out=tuple(renamed[n] for n in step.out),
            ranges={renamed[n]: ends for n, ends in step.ranges.items()}, left=tuple(q.replaced(given) for q in step.left),
        )  # fmt: skip

    def _order(self, nest: Nest, target: str) -> Sequence[str]:
        return next(s.out for s in nest.steps if s.target == target)

    def finish(self, fresh: Iterator[str]) -> None:
        """Decides what is written, and shares long reductions with few results among many groups."""
        wanted = set(self.program.results) | self.several
        for unit in self.made:
            wanted |= unit.reads
        done: list[Unit] = []
        for unit in self.made:
            if isinstance(unit, Product):
                done.append(unit)
                continue
            unit.stored = {s.target for s in unit.steps} & wanted
            used = unit.stored | {x.tensor for s in unit.steps for x in loads(s.value)}
            unit.steps = [s for s in unit.steps if s.target in used]
            if unit.steps:
                done += self.shared(unit, fresh)
        self.made = done

    def shared(self, nest: Nest, fresh: Iterator[str]) -> list[Nest]:
        """The nest, or one that makes the parts of its reductions and one that puts them together."""
        first = nest.reductions
        depends = any(x.tensor in nest.values for s in first for x in loads(s.value))
        if not first or depends or any(not s.sets for s in nest.steps):
            return [nest]
        length = max(map(nest.inner, first))
        if nest.count < self.wanted and length >= _LONG:
            shares = min(self.wanted * 4 // nest.count, length // 1024, 2048)
        elif self.wide and not lies_along(nest, self.strides):
            shares = min(self.wanted * 64 // nest.count, length // (ACROSS * _FEW))
        else:
            shares = 1
        if shares < 2:
            return [nest]
        parts = Nest(dict(nest.points), [], set(), set(), shares)
        ending = Nest(dict(nest.points), [], set(nest.values), set(nest.stored))
        points = tuple(map(Poly.of, nest.points))
        for s in nest.steps:
            if not s.reduced:
                ending.steps.append(s)
                continue
            name = next(fresh)
            self.program.shapes[name] = (*nest.points.values(), shares)
            self.program.dtypes[name] = s.dtype
            parts.steps.append(replace(s, target=name, out=tuple(nest.points), left=(*points, Poly.of(SHARE))))
            parts.stored.add(name)
            load = Load(name, (*points, Poly.of(name)), (False,) * (len(points) + 1))
            ranges = {n: s.ranges[n] for n in s.out} | {name: (0, shares)}
            ending.steps.append(replace(s, value=load, ranges=ranges))
        return [parts, ending]
