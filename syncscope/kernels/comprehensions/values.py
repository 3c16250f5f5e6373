"""Values as OpenCL C: expressions in torch's dtypes, index polynomials, reads that are made once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from syncscope.kernels.comprehensions.dtypes import DTYPES, FLOAT, kind, settled
from syncscope.kernels.comprehensions.expressions import (
    COMPARISONS,
    Apply,
    Interval,
    Name,
    Node,
    Number,
    Poly,
    Read,
    interval,
    names,
)  # fmt: skip
from syncscope.kernels.comprehensions.functions import call
from syncscope.kernels.comprehensions.program import Program
from syncscope.kernels.elementwise import compute_dtype, load
from syncscope.kernels.generate.text import Fields
from syncscope.kernels.programs import C_TYPE

HELPERS = """
static inline int down(int a, int b) { const int q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int rest(int a, int b) { return a - down(a, b) * b; }
"""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of C, and the reads that were made in them, by the name of their value.

    Where a loop has `turns`, what is read in it stays in registers for the loops behind, an element for each turn.
    """

    lines: list[str] = field(default_factory=list)
    made: dict[Read, tuple[str, torch.dtype]] = field(default_factory=dict)
    turns: int = 0


class Values:
    """What is written so far of a kernel: numbers, tensors and plain numbers that it takes, lines and reads of the point."""

    def __init__(self, program: Program, points: Mapping[str, int]) -> None:
        self.program, self.outer = program, set(points)
        self.fields = Fields()
        self.count = itertools.count()
        self.inputs: dict[str, None] = {}
        self.given: dict[str, None] = {}
        self.point = Block()
        self.at: dict[str, str] = {}  # by variable: its name in C
        self.over: dict[str, Interval] = {n: (0.0, float(size - 1)) for n, size in points.items()}
        self.real = torch.float64 if torch.float64 in program.dtypes.values() else torch.float32

    def number(self, value: int) -> str:
        """A number that is not worth a kernel of its own."""
        return str(value) if -2 < value < 3 else self.fields(f"c{next(self.count)}", value)

    def index(self, p: Poly, to: Block) -> str:
        """C of an integer polynomial."""
        found = []
        for monomial, factor in p.terms:
            parts = [self.variable(v, to) for v in monomial]
            if factor != 1 or not parts:
                parts.insert(0, self.number(factor))
            found.append(" * ".join(f"({x})" if " " in x else x for x in parts))
        return f"({' + '.join(found)})" if found else "0"

    def variable(self, v: Node, to: Block) -> str:
        match v:
            case Name(name):
                return self.at[name]
            case Apply("min" | "max" as kind, (Poly() as x, Poly() as y)):
                return f"{kind}({self.index(x, to)}, {self.index(y, to)})"
            case Apply("//" | "%" as kind, (Poly() as x, Poly() as y)):
                a, by = self.index(x, to), y.number
                if by is not None and by > 0 and interval(x, self.over)[0] >= 0:
                    return f"{a} {kind[0]} {by}"  # written out: a division by a number that the compiler knows is none
                return f"{'down' if kind == '//' else 'rest'}({a}, {self.index(y, to) if by is None else by})"
        return f"(int)({self.expression(v, to)[0]})"

    def expression(self, node: Node, to: Block) -> tuple[str, torch.dtype]:
        """C of a value, and its dtype. What it reads is read before it in the block, or once for the point."""
        own = self.settled(node)
        match node:
            case Number(value):
                return _literal(value, own), own
            case Name(name):
                return f"(long){self.at[name]}", torch.int64
            case Read():
                return self.read(node, to)
            case Poly():
                return self.expression(node.node(), to)
            case Apply(function, (x,)) if function.startswith("cast "):
                wanted = DTYPES.get(function.removeprefix("cast "), own)
                return f"({cast(*self.expression(x, to), wanted)})", wanted
            case Apply("?", (condition, yes, no)):
                test = self.expression(condition, to)[0]
                return f"({test} ? {self.typed(yes, own, to)} : {self.typed(no, own, to)})", own
            case Apply("&&" | "||" | "not" as function, args):
                return f"({call(function, [self.expression(x, to)[0] for x in args], '')})", torch.bool
            case Apply(function, args):
                common = self.settled(Apply("+", args)) if function in COMPARISONS else own
                texts = [self.typed(x, common, to) for x in args]
                return f"({call(function, texts, C_TYPE[compute_dtype(common)], not common.is_floating_point)})", own
        raise TypeError(node)

    def typed(self, node: Node, dtype: torch.dtype, to: Block) -> str:
        """C of a value in a dtype."""
        return _literal(node.value, dtype) if isinstance(node, Number) else cast(*self.expression(node, to), dtype)

    def settled(self, node: Node) -> torch.dtype:
        """The dtype of a value; plain numbers with a point are as exact as the most exact tensor."""
        found = kind(node, self.program.dtypes, self.program.numbers)
        return self.real if found == (None, FLOAT) else settled(found)

    def read(self, node: Read, to: Block) -> tuple[str, torch.dtype]:
        if node.tensor in self.program.numbers:
            self.given[node.tensor] = None
            return c_name(node.tensor), self.real
        dtype = self.program.dtypes[node.tensor]
        if not node.indexes:  # what the point has one of
            return f"v_{node.tensor}", compute_dtype(dtype)
        if self.outside(node):
            to = self.point  # once for the point; what stands before is whole lines
        if node in to.made:
            return to.made[node]
        self.inputs[node.tensor] = None
        c = C_TYPE[compute_dtype(dtype)]
        text = load(dtype, c_name(node.tensor), f"{c_name(node.tensor)}_at + {self.index(node.indexes[0], to)}", c)
        if node.other is not None:
            tests = [f"(uint)({self.index(q, to)}) < (uint){self.number(size)}" for q, size in node.bounds]
            text = f"{' && '.join(tests)} ? {text} : {self.typed(node.other, dtype, to)}"
        name = f"x{next(self.count)}"
        if to.turns:
            self.point.lines.append(f"{c} {name}[{to.turns}];")
            name = f"{name}[u]"
        to.lines.append(f"{name} = {text};" if to.turns else f"const {c} {name} = {text};")
        to.made[node] = name, compute_dtype(dtype)
        return to.made[node]

    def outside(self, node: Read) -> bool:
        """Whether a read is the same for all that a point runs through."""
        (address,) = node.indexes
        return names(address) <= self.outer and not address.data and node.other is None


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
    return f"({float(value)!r}{'f' if dtype != torch.float64 else ''})" if dtype.is_floating_point else f"({value!r})"
