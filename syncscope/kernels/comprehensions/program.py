"""A comprehension at a call: sizes are numbers, every index is known to stay inside or is checked, dtypes are torch's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels.comprehensions.dtypes import DTYPES, INT, Argument, category, kind, settled
from syncscope.kernels.comprehensions.expressions import (
    Apply,
    Name,
    Node,
    Number,
    Poly,
    Read,
    interval,
    names,
    poly,
    reads,
    replaced,
    truth,
)  # fmt: skip
from syncscope.kernels.comprehensions.notation import INTEGERS
from syncscope.kernels.comprehensions.statements import Function, Parameter, Statement, show

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A statement with numbers for its ranges, which hold the variables on the left first."""

    target: str
    out: tuple[str, ...]
    op: str
    value: Node
    ranges: dict[str, tuple[int, int]]
    dtype: torch.dtype
    written: str = ""  # the statement, for people
    left: tuple[Poly, ...] = ()  # the indexes on the left, where ranges have been moved to begin at 0

    @property
    def reduced(self) -> tuple[str, ...]:
        """The variables that are on the right only."""
        return tuple(self.ranges)[len(self.out) :]

    def size(self, name: str) -> int:
        """How many values a variable takes."""
        low, high = self.ranges[name]
        return max(0, high - low)

    def count(self, names: Iterable[str] | None = None) -> int:
        """How many values several take together, or all."""
        return math.prod(map(self.size, self.ranges if names is None else names))

    def replaced(self, given: Mapping[str, Poly], **changes: Any) -> Step:
        """With polynomials for variables, and other ranges then."""
        left = tuple(p.replaced(given) for p in self.left)
        return replace(self, value=replaced(self.value, given), left=left, **changes)

    def zero_based(self) -> Step:
        """The same with every range from 0."""
        moved = {name: Poly.of(name) + low for name, (low, _) in self.ranges.items() if low}
        step = replace(self, left=tuple(map(Poly.of, self.out)))
        return step.replaced(moved, ranges={name: (0, high - low) for name, (low, high) in self.ranges.items()})


@dataclass(frozen=True, slots=True)
class Program:
    """All steps, and what every tensor is; `numbers` are the parameters that were given as plain numbers."""

    name: str
    steps: tuple[Step, ...]
    shapes: dict[str, Ints]
    dtypes: dict[str, torch.dtype]
    numbers: frozenset[str]
    results: tuple[str, ...]
    parts: itertools.count[int] = field(default_factory=lambda: itertools.count(1), compare=False)

    def copy(self) -> Program:
        """The same, to which parts may be added."""
        return replace(self, shapes=dict(self.shapes), dtypes=dict(self.dtypes), parts=itertools.count(1))

    def part(self, shape: Iterable[int], dtype: torch.dtype) -> str:
        """A new tensor for a part of a statement: its name."""
        name = f"{self.name}_part{next(self.parts)}"
        self.shapes[name], self.dtypes[name] = tuple(shape), dtype
        return name

    def dtype(self, node: Node) -> torch.dtype:
        """Of an expression."""
        return settled(kind(node, self.dtypes, self.numbers))


def bind(f: Function, args: Sequence[Argument]) -> Program:
    """The program for these arguments, of which only shapes, dtypes and integer numbers are looked at.

    Raises:
        NotationError: an argument does not fit its parameter, a range is empty, or an index would leave its tensor.
    """
    if len(args) != len(f.parameters):
        hint = f"they are {', '.join(p.name for p in f.parameters)}"
        message = f"{f.name} takes {len(f.parameters)} argument{'s' * (len(f.parameters) != 1)}, not {len(args)}"
        raise f.error(f.at, message, hint)
    given = _sizes(f, args)
    tensors = {p.name: x for p, x in zip(f.parameters, args, strict=True) if isinstance(x, Tensor)}
    numbers = frozenset(p.name for p in f.parameters if p.name not in tensors and p.name not in given)
    shapes = {name: tuple(x.shape) for name, x in tensors.items()} | dict.fromkeys(numbers, ())
    program = Program(f.name, (), shapes, {name: x.dtype for name, x in tensors.items()}, numbers, f.results)
    return replace(program, steps=tuple(_Binder(f, s, given, program).step() for s in f.statements))


def _sizes(f: Function, args: Sequence[Argument]) -> dict[str, Poly]:
    """The numbers of sizes and integer parameters."""
    given: dict[str, Poly] = {}
    first: dict[str, str] = {}
    dims: list[tuple[Poly, int, Parameter, Tensor]] = []
    for p, x in zip(f.parameters, args, strict=True):
        if wrong := _misfit(p, x):
            raise f.error(p.at, wrong, f"{f.name} needs {p.written} {p.name}")
        if p.dims is None and p.type in INTEGERS:
            given[p.name] = Poly.of(int(x))
        dims += [(dim, i, p, x) for i, dim in enumerate(p.dims or ())]
    for dim, i, p, x in sorted(dims, key=lambda d: not d[0].name):  # names first, then what is made of them
        size = int(x.shape[i])
        if dim.name and dim.name not in given:
            given[dim.name], first[dim.name] = Poly.of(size), p.name
        elif (known := dim.replaced(given).number) != size:
            where = f", as for {first[dim.name]}" if dim.name in first else ""
            message = f"{p.name} is {list(x.shape)}: its dimension {i} is {size}, and {show(dim)} is {known}{where}"
            raise f.error(dim.at, message, f"{f.name} needs {p.written} {p.name}")
    return given


def _misfit(p: Parameter, x: Argument) -> str:
    """What is wrong with an argument, if anything."""
    number = p.dims is None and p.type in INTEGERS
    if not isinstance(x, Tensor):
        if p.dims is None and isinstance(x, int if number else (int, float)):
            return ""
        what = "whole number" if number else "number" if p.dims is None else "tensor"
        return f"{p.name} is a {what}, and was given {type(x).__name__}"
    if number:
        return f"{p.name} is a number of the host, and was given a tensor: reading it would wait for the device"
    if x.dim() != (own := len(p.dims or ())):
        return f"{p.name} has {own} dimension{'' if own == 1 else 's'}, and was given {x.dim()}: {list(x.shape)}"
    fits = {"float": x.dtype.is_floating_point, "int": category(x.dtype) == INT and not x.is_complex()}
    if not fits.get(p.type, x.dtype == DTYPES.get(p.type)):
        return f"{p.name} is {p.type}, and was given {str(x.dtype).removeprefix('torch.')}"
    return ""


class _Binder:
    """Puts numbers for sizes in a statement, and checks where each element lies. What it writes joins the program's tensors."""

    def __init__(self, f: Function, s: Statement, given: Mapping[str, Poly], program: Program) -> None:
        self.f, self.s, self.given, self.program, self.shapes = f, s, given, program, program.shapes
        self.ends = {name: self.range(name) for name in s.ranges}
        self.runs = all(a < b for a, b in self.ends.values())
        self.over = {name: (float(a), float(b - 1)) for name, (a, b) in self.ends.items()}
        self.guarded = False  # by a condition on indexes: what it keeps from being read outside need not be told

    def step(self) -> Step:
        s, program = self.s, self.program
        value = self.bound(s.value)
        for x in s.exists:
            if names(x) <= {*s.ranges, *self.given}:
                self.bound(x)  # for its check
        for n in s.out:
            if low := self.ends[n][0]:
                hint = (
                    f"shift it, set all of {s.target} first, or let {n} begin at 0 and write `else 0` at what is read"
                )
                raise self.f.error(s.at, f"{n} begins at {low}: the rest of {s.target} would be unset", hint)
        dtype = program.dtype(value)
        self.shapes[s.target] = tuple(self.ends[n][1] for n in s.out)
        program.dtypes[s.target] = torch.int64 if s.op in "+*" and not dtype.is_floating_point else dtype
        return Step(s.target, s.out, s.op, value, self.ends, program.dtypes[s.target], s.written)

    def range(self, name: str) -> tuple[int, int]:
        """The numbers of a range."""
        low, high = self.s.ranges[name]
        a, b = low.replaced(self.given).number, high.replaced(self.given).number
        said = f"{show(low)}:{show(high)}"
        if a is None or b is None:
            message = f"the range of {name}, {said}, divides by zero"
            raise self.f.error(self.s.at, message, "a stride is at least 1")
        if b < a or (b == a and all(map(math.prod, self.shapes.values()))):
            why = "its `where` says" if self.s.why[name] == "where" else f"{self.s.why[name]} allows"
            known = names(low) | names(high)
            found = "".join(f", and {n} is {v.number}" for n, v in self.given.items() if n in known)
            message = f"nothing is left for {name}: {why} {said}{found}"
            hint = "" if self.s.why[name] == "where" else "the tensors are too small for it"
            raise self.f.error(self.s.at, message, hint)
        return a, b

    def bound(self, node: Node) -> Node:
        match node:
            case Name():
                return replaced(node, self.given)
            case Poly():
                return poly(node.with_parts(map(self.bound, node.parts)))
            case Read():
                return self.read(node)
        if not isinstance(node, Apply) or node.function != "?":
            return node.with_parts(map(self.bound, node.parts))
        test, before = self.bound(node.args[0]), self.guarded
        self.guarded = before or not reads(test)
        yes, no = map(self.bound, node.args[1:])
        self.guarded = before
        known = truth(test)
        return replace(node, args=(test, yes, no)) if known is None else yes if known else no

    def read(self, node: Read) -> Read:
        indexes = tuple(poly(self.bound(index)) for index in node.indexes)
        bounds = []
        for written, index, size in zip(node.indexes, indexes, self.shapes[node.tensor], strict=True):
            if any(self.program.dtype(x).is_floating_point for x in index.parts):
                raise self.f.error(
                    node.at, f"{show(written)} is no integer, and indexes {node.tensor}", "write int(...)"
                )
            low, high = interval(index, self.over)
            if not self.runs or (low >= 0 and high < size):
                continue
            bounds.append((index, size))
            if node.other is None and not index.data and not self.guarded:
                message = f"{show(node)} may leave {node.tensor}: {show(written)} cannot be followed"
                if math.isfinite(low) and math.isfinite(high):
                    message = f"{show(node)} leaves {node.tensor}: {show(written)} is {low:.0f} to {high:.0f} of {size}"
                hint = "" if node in self.s.exists else f", or write `{show(node)} else 0`"
                raise self.f.error(node.at, message, f"give a smaller range{hint}")
        other = None if not bounds else Number(0) if node.other is None else self.bound(node.other)
        return Read(node.tensor, indexes, other, tuple(bounds), at=node.at)
