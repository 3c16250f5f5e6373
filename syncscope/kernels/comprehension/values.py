"""Values as OpenCL C: expressions in torch's dtypes, index polynomials, loads that are made once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import torch

from syncscope.kernels.comprehension.algebra import Atom, Interval, Poly, interval
from syncscope.kernels.comprehension.functions import call
from syncscope.kernels.comprehension.places import Place, unplaced
from syncscope.kernels.comprehension.program import DTYPES, Load, Program, kind, settled
from syncscope.kernels.comprehension.tree import Apply, Name, Node, Number
from syncscope.kernels.elementwise import compute_dtype, load
from syncscope.kernels.generate.text import Fields
from syncscope.kernels.programs import C_TYPE

HELPERS = """
static inline int down(int a, int b) { const int q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int rest(int a, int b) { return a - down(a, b) * b; }
"""


Seen = dict[Place, tuple[str, torch.dtype]]  # loads that were made, by the name of their value


class Values:
    """What is written so far of a kernel: numbers, tensors and plain numbers that it takes, lines and loads of the point."""

    def __init__(self, program: Program, points: Mapping[str, int]) -> None:
        self.program, self.outer = program, set(points)
        self.fields = Fields()
        self.count = itertools.count()
        self.inputs: dict[str, None] = {}
        self.given: dict[str, None] = {}
        self.lines: list[str] = []
        self.seen: Seen = {}
        self.at: dict[str, str] = {}  # by variable: its name in C
        self.over: dict[str, Interval] = {n: (0.0, float(size - 1)) for n, size in points.items()}
        self.real = torch.float64 if torch.float64 in program.dtypes.values() else torch.float32

    def number(self, value: int) -> str:
        """A number that is not worth a kernel of its own."""
        return str(value) if -2 < value < 3 else self.fields(f"c{next(self.count)}", value)

    def index(self, p: Poly, to: list[str], seen: Seen | None = None) -> str:
        """C of an integer polynomial."""
        found = []
        for monomial, factor in p.terms:
            parts = [self.at[v] if isinstance(v, str) else self.atom(v, to, seen) for v in monomial]
            if factor != 1 or not parts:
                parts.insert(0, self.number(factor))
            found.append(" * ".join(f"({x})" if " " in x else x for x in parts))
        return f"({' + '.join(found)})" if found else "0"

    def atom(self, v: Atom, to: list[str], seen: Seen | None) -> str:
        if v.node is not None:
            return f"(int)({self.expression(v.node, to, seen)[0]})"
        a, b = (self.index(x, to, seen) for x in v.parts)
        if v.kind in ("min", "max"):
            return f"{v.kind}({a}, {b})"
        by = v.parts[1].number
        if by is not None and by > 0 and interval(v.parts[0], self.over)[0] >= 0:
            return f"{a} {v.kind} {by}"  # written out: a division by a number that the compiler knows is none
        return f"{'down' if v.kind == '/' else 'rest'}({a}, {by if by is not None else b})"

    def expression(self, node: Node, to: list[str], seen: Seen | None) -> tuple[str, torch.dtype]:
        """C of a value, and its dtype. Loads go before it into `to`; those of the point alone before the loop."""
        settle = self.settled(node)
        c = C_TYPE[compute_dtype(settle)]
        match node:
            case Number(value):
                return _literal(value, settle), settle
            case Name(name):
                return f"(long){self.at[name]}" if name in self.at else name, torch.int64
            case Load(tensor):
                return f"v_{tensor}", compute_dtype(self.program.dtypes[tensor])
            case Place():
                return self.loaded(node, to, seen)
            case Apply(function, (x,)) if function.startswith("cast "):
                text, dtype = self.expression(x, to, seen)
                wanted = DTYPES.get(function.removeprefix("cast "), settle)
                return f"({cast(text, dtype, wanted)})", wanted
            case Apply("?", (condition, yes, no)):
                test, _ = self.expression(condition, to, seen)
                a, b = (self.typed(x, settle, to, seen) for x in (yes, no))
                return f"({test} ? {a} : {b})", settle
            case Apply("&&" | "||" as op, (left, right)):
                a, b = (self.expression(x, to, seen)[0] for x in (left, right))
                return f"({a} {op} {b})", torch.bool
            case Apply("not", (x,)):
                return f"(!{self.expression(x, to, seen)[0]})", torch.bool
            case Apply("==" | "!=" | "<" | "<=" | ">" | ">=" as op, (left, right)):
                common = self.settled(Apply("+", (left, right)))
                a, b = (self.typed(x, common, to, seen) for x in (left, right))
                return f"({a} {op} {b})", torch.bool
            case Apply("neg", (x,)):
                return f"(-{self.typed(x, settle, to, seen)})", settle
            case Apply("%", (left, right)):
                a, b = (self.typed(x, settle, to, seen) for x in (left, right))
                if settle.is_floating_point:
                    return f"({a} - {b} * floor({a} / {b}))", settle
                return f"({b} == 0 ? 0 : ({a} % {b} + {b}) % {b})", settle
            case Apply("//", (left, right)):
                a, b = (self.typed(x, settle, to, seen) for x in (left, right))
                if settle.is_floating_point:
                    return f"floor({a} / {b})", settle
                return f"({b} == 0 ? 0 : {a} / {b} - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0)))", settle
            case Apply("+" | "-" | "*" | "/" as op, (left, right)):
                a, b = (self.typed(x, settle, to, seen) for x in (left, right))
                return f"({a} {op} {b})", settle
            case Apply(function, args):
                texts = [f"({self.typed(x, settle, to, seen)})" for x in args]
                return f"({call(function, texts, c)})", settle
        raise TypeError(node)

    def typed(self, node: Node, dtype: torch.dtype, to: list[str], seen: Seen | None) -> str:
        """C of a value in a dtype."""
        return (
            _literal(node.value, dtype) if isinstance(node, Number) else cast(*self.expression(node, to, seen), dtype)
        )

    def settled(self, node: Node) -> torch.dtype:
        """The dtype of a value; plain numbers with a point are as exact as the most exact tensor."""
        found = kind(unplaced(node), self.program.dtypes, self.program.numbers)
        return self.real if found == (None, 2) else settled(found)

    def loaded(self, node: Place, to: list[str], seen: Seen | None) -> tuple[str, torch.dtype]:
        if node.tensor in self.program.numbers:
            self.given[node.tensor] = None
            return c_name(node.tensor), self.real
        dtype = self.program.dtypes[node.tensor]
        outer = set().union(*(p.variables() for p in (node.address, *(q for q, _ in node.bounds)))) <= self.outer
        if outer and node.other is None and not node.address.values():
            to, seen = self.lines, self.seen  # once for the point; what stands before is whole lines
        known = self.seen if seen is None else seen
        if node in known:
            return known[node]
        self.inputs[node.tensor] = None
        c = C_TYPE[compute_dtype(dtype)]
        place = f"{c_name(node.tensor)}_at + {self.index(node.address, to, seen)}"
        read = load(dtype, c_name(node.tensor), place, c)
        if node.bounds:
            tests = [f"(uint)({self.index(q, to, seen)}) < (uint){self.number(size)}" for q, size in node.bounds]
            assert node.other is not None
            read = f"{' && '.join(tests)} ? {read} : {self.typed(node.other, dtype, to, seen)}"
        name = f"x{next(self.count)}"
        to.append(f"const {c} {name} = {read};")
        known[node] = name, compute_dtype(dtype)
        return known[node]


def c_name(tensor: str) -> str:
    """What a tensor is called in C."""
    return f"t_{tensor}"


def cast(text: str, have: torch.dtype, want: torch.dtype) -> str:
    """C of a value of one dtype as another."""
    a, b = compute_dtype(have), compute_dtype(want)
    if want == torch.bool and have != torch.bool:
        return f"({text} != 0)"
    return text if a == b else f"({C_TYPE[b]})({text})"


def _literal(value: float, dtype: torch.dtype) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int) and not dtype.is_floating_point:
        return f"{value}L" if abs(value) >= 1 << 31 else f"({value})"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}INFINITY)"
    if not dtype.is_floating_point:
        return f"({value!r})"
    return f"({float(value)!r}{'' if dtype == torch.float64 else 'f'})"
