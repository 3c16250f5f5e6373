"""Statements and functions as they are written, and how they are printed again."""

from __future__ import annotations

from dataclasses import dataclass, field

from syncscope.kernels.comprehension.expressions import Apply, Name, Node, Number, Read, Size
from syncscope.kernels.comprehension.words import NotationError


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the function is called with. `dims` is None for a number."""

    type: str
    name: str
    dims: tuple[Node, ...] | None
    at: int = field(default=-1, compare=False)

    @property
    def defines(self) -> set[str]:
        """The sizes and numbers that it tells."""
        return {self.name} if self.dims is None else {d.name for d in self.dims if isinstance(d, Name)}

    @property
    def written(self) -> str:
        """Its type and sizes."""
        return self.type + ("" if self.dims is None else f"({', '.join(map(show, self.dims))})")


@dataclass(frozen=True, slots=True)
class Statement:
    """`target(indexes) op value where ...`; `op` is "=", "+", "*", "min" or "max", and `sets` whether it begins anew."""

    target: str
    indexes: tuple[str, ...]
    op: str
    sets: bool
    value: Node
    ranges: tuple[tuple[str, Node, Node], ...] = ()
    exists: tuple[Node, ...] = ()
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A whole comprehension."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    statements: tuple[Statement, ...]
    text: str = field(compare=False)
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
        case Number(value):
            text = {float("inf"): "inf", float("-inf"): "-inf"}.get(value) or (
                str(value).lower() if isinstance(value, bool) else repr(value)
            )
            return f"({text})" if text.startswith("-") and around else text
        case Name(name):
            return name
        case Size(tensor, dim):
            return f"{tensor}.{dim}"
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
    """As it is written."""
    target = f"{s.target}({', '.join(s.indexes)})" if s.indexes else s.target
    op = s.op if s.op == "=" else f"{s.op}={'!' if s.sets else ''}"
    clauses = [f"{name} in {show(low)}:{show(high)}" for name, low, high in s.ranges]
    clauses += [f"exists {show(x)}" for x in s.exists]
    return f"{target} {op} {show(s.value)}" + (f" where {', '.join(clauses)}" if clauses else "")


def show_function(f: Function) -> str:
    """As it is written, a statement a line."""
    given = ", ".join(f"{p.written} {p.name}" for p in f.parameters)
    body = "".join(f"    {show_statement(s)}\n" for s in f.statements)
    return f"def {f.name}({given}) -> ({', '.join(f.results)}) {{\n{body}}}"
