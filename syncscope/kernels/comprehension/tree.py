"""What a comprehension says, as values: expressions, statements, a function; how they are walked, changed and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Node:
    """An expression; `at` is where it begins in the text."""

    at: int = field(default=-1, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal; whether it is a float, an int or a bool is its Python type's matter."""

    value: float


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An index variable, a size, or an integer parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class Size(Node):
    """`A.0`: the size of a dimension."""

    tensor: str
    dim: int


@dataclass(frozen=True, slots=True)
class Read(Node):
    """An element of a tensor; with `other` it is that where the index leaves the tensor."""

    tensor: str
    indexes: tuple[Node, ...] = ()
    other: Node | None = None


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """An operator or a function by its name: "+", "neg", "?", "exp"; "cast float32" is a cast."""

    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the function is called with. `dims` is None for a number."""

    type: str
    name: str
    dims: tuple[Node, ...] | None
    at: int = field(default=-1, compare=False)


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


def children(node: Node) -> tuple[Node, ...]:
    """The expressions right below."""
    match node:
        case Apply():
            return node.args
        case Read():
            return node.indexes if node.other is None else (*node.indexes, node.other)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The expression and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """The expression with `change` made of each part, those below first."""
    match node:
        case Apply():
            node = replace(node, args=tuple(rewrite(x, change) for x in node.args))
        case Read():
            other = None if node.other is None else rewrite(node.other, change)
            node = replace(node, indexes=tuple(rewrite(x, change) for x in node.indexes), other=other)
    return change(node)


def names(node: Node) -> set[str]:
    """The names that stand for numbers in it."""
    return {x.name for x in walk(node) if isinstance(x, Name)}


BINARY = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "//", "%"))  # weakest first
_STRENGTH = {op: level for level, ops in enumerate(BINARY, 1) for op in ops}
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
        case Apply(function, (left, right)) if function in _STRENGTH:
            own = _STRENGTH[function]
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
    given = ", ".join(
        f"{p.type}({', '.join(map(show, p.dims))}) {p.name}" if p.dims is not None else f"{p.type} {p.name}"
        for p in f.parameters
    )
    body = "".join(f"    {show_statement(s)}\n" for s in f.statements)
    return f"def {f.name}({given}) -> ({', '.join(f.results)}) {{\n{body}}}"
