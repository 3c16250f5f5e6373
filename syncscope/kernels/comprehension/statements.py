"""Statements and functions, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from syncscope.kernels.comprehension.expressions import Apply, Name, Node, Number, Poly, Read
from syncscope.kernels.comprehension.words import NotationError

Range = tuple[Poly, Poly]  # from the first to before the second


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the function is called with. `dims` is None for a number."""

    type: str
    name: str
    dims: tuple[Poly, ...] | None
    at: int = field(default=-1, compare=False)

    @property
    def defines(self) -> set[str]:
        """The sizes and numbers that it tells."""
        return {self.name} if self.dims is None else {d.name for d in self.dims if d.name}

    @property
    def written(self) -> str:
        """Its type and sizes."""
        return self.type + ("" if self.dims is None else f"({', '.join(map(show, self.dims))})")


@dataclass(frozen=True, slots=True)
class Statement:
    """`target(out) op value`; `op` is "=", "+", "*", "min" or "max", and `sets` whether it begins anew.

    `ranges` are those of the variables on the left, then of those that are reduced, in the order they appear in.
    """

    target: str
    out: tuple[str, ...]
    op: str
    sets: bool
    value: Node
    ranges: dict[str, Range]
    exists: tuple[Node, ...] = field(default=(), compare=False)
    why: dict[str, str] = field(default_factory=dict, compare=False)  # by variable: what gave the range
    written: str = field(default="", compare=False)
    at: int = field(default=-1, compare=False)

    @property
    def reduced(self) -> tuple[str, ...]:
        """The variables that are on the right only."""
        return tuple(name for name in self.ranges if name not in self.out)


@dataclass(frozen=True, slots=True)
class Function:
    """A whole comprehension; `sizes` are those of all tensors."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    statements: tuple[Statement, ...]
    sizes: dict[str, tuple[Poly, ...]]
    fixed: frozenset[str]  # the names of sizes and integer parameters
    text: str = field(default="", compare=False)
    at: int = field(default=-1, compare=False)

    def error(self, at: int, message: str, hint: str = "") -> NotationError:
        """What is wrong, to be raised."""
        return NotationError(self.text, at, message, hint)


BINARY = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "//", "%"))  # weakest first
STRENGTH = {op: level for level, ops in enumerate(BINARY, 1) for op in ops}
_UNARY = {"neg": "-", "not": "!"}
_TIGHT = len(BINARY) + 1


def show(node: Node, around: int = 0) -> str:
    """The expression as it is written, in parentheses where what is around it binds more tightly."""
    match node:
        case Number(bool(value)):
            return str(value).lower()
        case Number(value):
            text = repr(value)
            return f"({text})" if text.startswith("-") and around else text
        case Name(name):
            return name
        case Poly():
            return show(node.node(), around)
        case Read(tensor, indexes, other):
            text = f"{tensor}({', '.join(map(show, indexes))})" if indexes else tensor
            return text if other is None else f"{text} else {show(other, _TIGHT)}"
        case Apply("?", (condition, yes, no)):
            text = f"{show(condition, 1)} ? {show(yes)} : {show(no)}"
            return f"({text})" if around else text
        case Apply(function, (value,)) if function in _UNARY:
            return f"{_UNARY[function]}{show(value, _TIGHT)}"
        case Apply(function, (left, right)) if function in STRENGTH:
            own = STRENGTH[function]
            text = f"{show(left, own)} {function} {show(right, own + 1)}"
            return f"({text})" if own < around else text
        case Apply(function, args):
            return f"{function.removeprefix('cast ')}({', '.join(map(show, args))})"
    raise TypeError(node)


def show_statement(s: Statement) -> str:
    """As it is written, with all its ranges."""
    target = f"{s.target}({', '.join(s.out)})" if s.out else s.target
    op = s.op if s.op == "=" else f"{s.op}={'!' if s.sets else ''}"
    clauses = [f"{name} in {show(low)}:{show(high)}" for name, (low, high) in s.ranges.items()]
    return f"{target} {op} {show(s.value)}" + (f" where {', '.join(clauses)}" if clauses else "")


def show_function(f: Function) -> str:
    """As it is written, a statement a line."""
    given = ", ".join(f"{p.written} {p.name}" for p in f.parameters)
    body = "".join(f"    {show_statement(s)}\n" for s in f.statements)
    return f"def {f.name}({given}) -> ({', '.join(f.results)}) {{\n{body}}}"
