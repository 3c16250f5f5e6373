"""A comprehension at a call: sizes are numbers, every index is known to stay inside or is checked, dtypes are torch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from syncscope.kernels.comprehension.algebra import Poly, interval, poly
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.notation import FLOATS, INTEGERS
from syncscope.kernels.comprehension.ranges import Ranged, Ranges, truth
from syncscope.kernels.comprehension.tree import (
    Apply,
    Function,
    Name,
    Node,
    Number,
    Parameter,
    Read,
    show,
    show_statement,
)
from syncscope.kernels.comprehension.words import NotationError

DTYPES = {"half": torch.float16, "double": torch.float64} | {
    name: getattr(torch, name)
    for name in (*FLOATS, *INTEGERS, "bool")
    if name not in ("half", "double", "float", "int")
}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "not")


@dataclass(frozen=True, slots=True)
class Load(Node):
    """An element of a tensor, or a given number. `checked` says of each index whether it may leave; it is `other` then."""

    tensor: str
    at_: tuple[Poly, ...] = ()
    checked: tuple[bool, ...] = ()
    other: Node | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A statement with numbers for its ranges, which hold the variables on the left first."""

    target: str
    out: tuple[str, ...]
    op: str
    sets: bool
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

    def count(self, names: Sequence[str]) -> int:
        """How many values several take together."""
        return math.prod(map(self.size, names))


def zero_based(step: Step) -> Step:
    """The same with every range from 0."""
    moved = {name: Poly.of(name) + low for name, (low, _) in step.ranges.items() if low}
    left = tuple(moved.get(name, Poly.of(name)) for name in step.out)
    ranges = {name: (0, high - low) for name, (low, high) in step.ranges.items()}
    return replace(step, value=changed(step.value, moved) if moved else step.value, ranges=ranges, left=left)


@dataclass(frozen=True, slots=True)
class Program:
    """All steps, and what every tensor is; `numbers` are the parameters that were given as plain numbers."""

    name: str
    steps: tuple[Step, ...]
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, torch.dtype]
    numbers: frozenset[str]
    results: tuple[str, ...]


def parts(node: Node) -> tuple[Node, ...]:
    """The expressions right below, those inside indexes among them."""
    match node:
        case Apply():
            return node.args
        case Load():
            inner = tuple(x for p in node.at_ for x in p.values())
            return inner if node.other is None else (*inner, node.other)
    return ()


def each(node: Node) -> Iterator[Node]:
    """The expression and all below it."""
    yield node
    for part in parts(node):
        yield from each(part)


def loads(node: Node) -> Iterator[Load]:
    """All loads in it."""
    return (x for x in each(node) if isinstance(x, Load))


def changed(node: Node, given: Mapping[str, Poly], change: Callable[[Load], Node] = lambda x: x) -> Node:
    """With polynomials for index variables, and `change` made of each load after that."""
    match node:
        case Name(name) if name in given:
            return given[name].node()
        case Apply():
            return replace(node, args=tuple(changed(x, given, change) for x in node.args))
        case Load():
            at = tuple(p.replaced(given, lambda x: changed(x, given, change)) for p in node.at_)
            other = None if node.other is None else changed(node.other, given, change)
            return change(replace(node, at_=at, other=other))
    return node


def variables(node: Node) -> set[str]:
    """The index variables in it."""
    found: set[str] = set()
    for x in each(node):
        if isinstance(x, Name):
            found.add(x.name)
        elif isinstance(x, Load):
            found = found.union(*(p.variables() for p in x.at_))
    return found


# What an expression is: a dtype that it insists on, if any, and whether it is at least bool (0), int (1) or float (2).
Kind = tuple[torch.dtype | None, int]


def _category(dtype: torch.dtype) -> int:
    return 2 if dtype.is_floating_point else 0 if dtype == torch.bool else 1


def settled(kind: Kind) -> torch.dtype:
    """The dtype of a tensor of that kind, by torch's rules: a plain number decides no more than float, int or bool."""
    strong, least = kind
    if strong is not None and _category(strong) >= least:
        return strong
    return (torch.bool, torch.int64, torch.get_default_dtype())[least]


def kind(node: Node, dtypes: Mapping[str, torch.dtype], numbers: frozenset[str] = frozenset()) -> Kind:
    """What an expression gives."""
    match node:
        case Number(value):
            return None, 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2
        case Name():
            return None, 1
        case Load(tensor) if tensor in numbers:
            return None, 2
        case Load(tensor):
            return dtypes[tensor], _category(dtypes[tensor])
        case Apply(function, _) if function in _COMPARE:
            return torch.bool, 0
        case Apply(function, _) if function.startswith("cast "):
            name = function.removeprefix("cast ")
            return (DTYPES[name], 0) if name in DTYPES else (None, 2 if name == "float" else 1)
        case Apply("?", (_, yes, no)):
            return _joined([kind(yes, dtypes, numbers), kind(no, dtypes, numbers)], 0)
        case Apply(function, args):
            known = FUNCTIONS.get(function)
            least = 2 if function == "/" or (known is not None and known.floats) else 1
            return _joined([kind(x, dtypes, numbers) for x in args], least)
    raise TypeError(node)


def _joined(kinds: Sequence[Kind], least: int) -> Kind:
    strong: torch.dtype | None = None
    for one, _ in kinds:
        if one is not None:
            strong = one if strong is None else torch.promote_types(strong, one)
    least = max(least, *(x for _, x in kinds))
    if strong is not None and _category(strong) < least:
        strong = settled((strong, least))
    return strong, least


def bind(f: Function, ranges: Ranges, args: Sequence[Any]) -> Program:
    """The program for these arguments, of which only shapes, dtypes and integer numbers are looked at.

    Raises:
        NotationError: an argument does not fit its parameter, a range is empty, or an index would leave its tensor.
    """
    if len(args) != len(f.parameters):
        names = ", ".join(p.name for p in f.parameters)
        raise NotationError(
            f.text, f.at, f"{f.name} takes {len(f.parameters)} arguments, not {len(args)}", f"they are {names}"
        )
    sizes = _sizes(f, args)
    given = {name: Poly.of(value) for name, value in sizes.items()}
    shapes = {p.name: tuple(x.shape) for p, x in zip(f.parameters, args, strict=True) if isinstance(x, Tensor)}
    dtypes = {p.name: x.dtype for p, x in zip(f.parameters, args, strict=True) if isinstance(x, Tensor)}
    numbers = frozenset(p.name for p in f.parameters if p.name not in shapes and p.name not in sizes)
    shapes |= dict.fromkeys(numbers, ())
    steps = []
    for ranged in ranges.statements:
        s = ranged.statement
        ends = _ends(f, ranged, given, shapes)
        value = _Binder(f, given, shapes, ends).bound(ranged.value)
        if s.target not in shapes:
            if first := next((n for n in s.indexes if ends[n][0]), None):
                hint = f"shift it, or set all of {s.target} first and write this with += and the like"
                raise NotationError(
                    f.text, s.at, f"{first} begins at {ends[first][0]}: the rest of {s.target} would be unset", hint
                )
            shapes[s.target] = tuple(ends[n][1] for n in s.indexes)
            dtype = settled(kind(value, dtypes, numbers))
            dtypes[s.target] = torch.int64 if s.op in "+*" and not dtype.is_floating_point else dtype
        elif first := next(
            (n for n, size in zip(s.indexes, shapes[s.target], strict=True) if ends[n][0] < 0 or ends[n][1] > size),
            None,
        ):
            raise NotationError(
                f.text,
                s.at,
                f"{first} would leave {s.target}, which is {list(shapes[s.target])}",
                "give a smaller range",
            )
        steps.append(Step(s.target, s.indexes, s.op, s.sets, value, ends, dtypes[s.target], show_statement(s)))
    return Program(f.name, tuple(steps), shapes, dtypes, numbers, f.results)


def _sizes(f: Function, args: Sequence[Any]) -> dict[str, int]:
    """The numbers of sizes and integer parameters."""
    sizes: dict[str, int] = {}
    first: dict[str, Parameter] = {}
    for p, x in zip(f.parameters, args, strict=True):
        _check(f, p, x)
        if p.dims is None and p.type in INTEGERS:
            sizes[p.name] = int(x)
    for plain in (True, False):  # names first, then what is made of them
        for p, x in zip(f.parameters, args, strict=True):
            for i, dim in enumerate(p.dims or ()):
                if isinstance(dim, Name) is not plain:
                    continue
                size = int(x.shape[i])
                if isinstance(dim, Name) and dim.name not in sizes:
                    sizes[dim.name], first[dim.name] = size, p
                    continue
                known = poly(dim).replaced({name: Poly.of(value) for name, value in sizes.items()}).number
                if known != size:
                    where = f", as for {first[dim.name].name}" if isinstance(dim, Name) and dim.name in first else ""
                    message = (
                        f"{p.name} is {list(x.shape)}: its dimension {i} is {size}, and {show(dim)} is {known}{where}"
                    )
                    raise NotationError(
                        f.text, dim.at if dim.at >= 0 else p.at, message, f"{f.name} needs {_said(p)} {p.name}"
                    )
    return sizes


def _said(p: Parameter) -> str:
    return p.type + ("" if p.dims is None else f"({', '.join(map(show, p.dims))})")


def _check(f: Function, p: Parameter, x: Any) -> None:
    def wrong(message: str) -> NotationError:
        return NotationError(f.text, p.at, message, f"{f.name} needs {_said(p)} {p.name}")

    if p.dims is None and not isinstance(x, Tensor):
        if isinstance(x, int if p.type in INTEGERS else (int, float)):
            return
        raise wrong(f"{p.name} is a number, and was given {type(x).__name__}")
    if not isinstance(x, Tensor):
        raise wrong(f"{p.name} is a tensor, and was given {type(x).__name__}")
    if p.dims is None and p.type in INTEGERS:
        raise wrong(f"{p.name} is a number of the host, and was given a tensor: reading it would wait for the device")
    if x.dim() != len(p.dims or ()):
        own = len(p.dims or ())
        raise wrong(f"{p.name} has {own} dimension{'' if own == 1 else 's'}, and was given {x.dim()}: {list(x.shape)}")
    fits = {"float": x.dtype.is_floating_point, "int": _category(x.dtype) == 1 and not x.is_complex()}
    if not fits.get(p.type, x.dtype == DTYPES.get(p.type)):
        raise wrong(f"{p.name} is {p.type}, and was given {str(x.dtype).removeprefix('torch.')}")


def _ends(
    f: Function, ranged: Ranged, given: Mapping[str, Poly], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, int]]:
    s, ends = ranged.statement, {}
    for name, (low, high) in ranged.ranges.items():
        a, b = low.replaced(given).number, high.replaced(given).number
        if a is None or b is None:
            raise NotationError(
                f.text,
                s.at,
                f"the range of {name}, {show(low.node())}:{show(high.node())}, divides by zero",
                "a stride is at least 1",
            )
        if b < a or (b == a and all(math.prod(shape) for shape in shapes.values())):
            why = "its `where` says" if ranged.why[name] == "where" else f"{ranged.why[name]} allows"
            found = ", ".join(f"{n} is {v.number}" for n, v in given.items() if n in low.variables() | high.variables())
            said = f"{show(low.node())}:{show(high.node())}"
            message = f"nothing is left for {name}: {why} {said}, and {found or 'that is empty'}"
            raise NotationError(f.text, s.at, message, "the tensors are too small for it")
        ends[name] = (a, b)
    return ends


class _Binder:
    """Puts numbers for sizes, and checks where each read lands."""

    def __init__(
        self,
        f: Function,
        given: Mapping[str, Poly],
        shapes: Mapping[str, tuple[int, ...]],
        ends: Mapping[str, tuple[int, int]],
    ) -> None:
        self.f, self.given, self.shapes = f, given, shapes
        self.runs = all(a < b for a, b in ends.values())
        self.over = {name: (float(a), float(b - 1)) for name, (a, b) in ends.items()}

    def bound(self, node: Node) -> Node:
        match node:
            case Name(name) if name in self.given:
                return self.given[name].node()
            case Apply("?", args):
                condition, yes, no = map(self.bound, args)
                known = truth(condition)
                return Apply("?", (condition, yes, no), at=node.at) if known is None else yes if known else no
            case Apply(function, args):
                return Apply(function, tuple(map(self.bound, args)), at=node.at)
            case Read():
                return self.load(node)
        return node

    def load(self, node: Read) -> Load:
        at, checked = [], []
        for index, size in zip(node.indexes, self.shapes[node.tensor], strict=True):
            place = poly(index).replaced(self.given, self.bound)
            low, high = interval(place, self.over)
            leaves = self.runs and not (low >= 0 and high < size)
            data = bool(place.values())
            if leaves and node.other is None and not data:
                if math.isfinite(low) and math.isfinite(high):
                    message = f"{show(node)} leaves {node.tensor}: {show(index)} is {low:.0f} to {high:.0f} of {size}"
                else:
                    message = f"{show(node)} may leave {node.tensor}: {show(index)} cannot be followed"
                raise NotationError(
                    self.f.text, node.at, message, f"give a smaller range, or write `{show(node)} else 0`"
                )
            at.append(place)
            checked.append(leaves)
        other = None if not any(checked) else Number(0) if node.other is None else self.bound(node.other)
        return Load(node.tensor, tuple(at), tuple(checked), other, at=node.at)
