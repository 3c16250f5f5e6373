"""Statements and functions, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from syncscope.kernels.comprehensions.expressions import Apply, Name, Node, Number, Poly, Read, replaced, rewrite
from syncscope.kernels.comprehensions.words import NotationError

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
    """`target(out) op value`; `op` is "=", "+", "*", "min" or "max", and begins with nothing: each tensor is written once.

    `ranges` are those of the variables on the left, then of those that are reduced, in the order they appear in.
    """

    target: str
    out: tuple[str, ...]
    op: str
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


def renamed(s: Statement, old: str, new: str) -> Statement:
    """With another name for a tensor."""

    def change(x: Node) -> Node:
        return replace(x, tensor=new) if isinstance(x, Read) and x.tensor == old else x

    return replace(
        s, target=new if s.target == old else s.target, value=rewrite(s.value, change),
        exists=tuple(rewrite(x, change) for x in s.exists),
    )  # fmt: skip


def written_over(s: Statement, sizes: tuple[Poly, ...], old: str, part: str, anew: bool) -> list[Statement]:
    """A statement whose target is there already, by the name `old`: what is not written anew, or not at all, stays as it is.

    What the statement adds is a tensor of its own, `part`, where it reduces or does not run over all of `sizes`.
    """
    whole = {n: (Poly(), size) for n, size in zip(s.out, sizes, strict=True)}
    full = all(s.ranges[n] == whole[n] for n in s.out)
    if full and anew:
        return [s]
    before = Read(old, tuple(map(Poly.of, s.out)))
    first: list[Statement] = []
    made = s.value
    if s.reduced or not full:
        lows = {n: s.ranges[n][0] for n in s.out}
        from_zero = {n: Poly.of(n) + low for n, low in lows.items()}
        ranges = {n: (low - lows.get(n, 0), high - lows.get(n, 0)) for n, (low, high) in s.ranges.items()}
        exists = tuple(replaced(x, from_zero) for x in s.exists)
        why = s.why | {n: "its statement" for n, low in lows.items() if low.terms}
        value = replaced(s.value, from_zero)
        first = [replace(s, target=part, value=value, ranges=ranges, exists=exists, why=why)]
        outside = {"+": Number(0), "*": Number(1)}.get("=" if anew else s.op, before)
        made = Read(part, tuple(Poly.of(n) - low for n, low in lows.items()), None if full else outside)
    value = made if anew else Apply(s.op, (before, made))
    return [*first, replace(s, op="=", value=value, ranges=whole, exists=() if first else s.exists)]


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
    op = s.op if s.op == "=" else f"{s.op}=!"
    clauses = [f"{name} in {show(low)}:{show(high)}" for name, (low, high) in s.ranges.items()]
    return f"{target} {op} {show(s.value)}" + (f" where {', '.join(clauses)}" if clauses else "")


def show_function(f: Function) -> str:
    """As it is written, a statement a line."""
    given = ", ".join(f"{p.written} {p.name}" for p in f.parameters)
    body = "".join(f"    {show_statement(s)}\n" for s in f.statements)
    return f"def {f.name}({given}) -> ({', '.join(f.results)}) {{\n{body}}}"
