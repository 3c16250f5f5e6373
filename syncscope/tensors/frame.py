"""The state of interpreting one function: what its names hold, where the host would wait, how hot the place is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors.facts import BOOL, COMPARED, DEVICE, HOST, SEQUENCE, TENSOR, tensor
from syncscope.tensors.project import Class, Function, Module

EXPRESSIONS: dict[type, Callable[[Frame, Any], Fact]] = {}  # filled by expressions.py
ASKED: dict[type, Callable[[Frame, Any], Fact]] = {}  # the same where Python asks for the truth
STATEMENTS: dict[type, Callable[[Frame, Any], None]] = {}  # filled by statements.py


class Wait(NamedTuple):
    """A Site before it is asked for: what `emit` was told."""

    op: str
    node: ast.AST
    operand: ast.expr | None
    fact: Fact
    confidence: int
    hotness: tuple[bool, str] | None


class Frame:
    """One run through a function (or a module's top level)."""

    call: Callable[..., Fact]  # filled by calls.py: whatever a fact stands for, called

    __slots__ = (
        "clock",
        "dead",
        "depth",
        "env",
        "function",
        "guarded",
        "hotness",
        "inlined",
        "module",
        "nested",
        "on_host",
        "outer",
        "returns",
        "seen",
        "table",
        "used",
        "waits",
        "work",
    )

    def __init__(
        self,
        module: Module,
        function: Function | None = None,
        outer: Frame | None = None,
        waits: dict[tuple[int, str], Wait] | None = None,
        depth: int = 0,
    ) -> None:
        self.module = module
        self.function = function
        self.outer = outer
        self.env: dict[str, Fact] = {}
        self.waits = waits  # None: only the result is wanted
        self.depth = depth
        self.inlined = 0
        self.table = EXPRESSIONS
        self.seen: dict[int, Fact] | None = None
        self.on_host = False  # the data pipeline, whose tensors live on the host
        self.guarded = False  # a dtype was asked for before: it waits in that precision only
        self.hotness: tuple[bool, str] | None = None  # what the surrounding block says
        self.returns: list[Fact] = []
        self.dead = False  # the rest of this block is not reached
        self.used: dict[str, int] = {}
        self.clock: ast.AST | None = None  # the last clock reading
        self.work = False  # the device was given work since
        self.nested: list[Function] = []

    @property
    def cls(self) -> Class | None:
        """The class whose method this is, also inside a nested function."""
        frame: Frame | None = self
        while frame is not None:
            if frame.function is not None and frame.function.cls is not None:
                return frame.function.cls
            frame = frame.outer
        return None

    @property
    def _sets_up(self) -> bool:
        return self.function is not None and self.function.name == "__init__"

    @property
    def alone(self) -> bool:
        """Whether what only arrays have only tensors have here: no other kind of array is named in this function."""
        usage = self.module.usage
        if usage.alone or self.function is None:
            return usage.alone
        node = self.function.node
        return usage.alone_between(node.lineno, node.end_lineno or node.lineno)

    def assumed(self, name: str, node: ast.AST) -> Fact:
        """What the use of a name says of a value that nothing else is known of."""
        weight = self.used.get(name)
        if weight == 2:
            return tensor(confidence=2, why=f"`{name}` is used as only a tensor can be")
        return UNKNOWN

    def emit(self, op: str, node: ast.AST, operand: ast.expr | None, fact: Fact, confidence: int = 3) -> None:
        """The host waits here, unless the operand lives on the host."""
        if self.waits is None or fact.device is HOST or (self.on_host and fact.device is not DEVICE):
            return
        if op == "size" and fact.confidence < 2:
            return  # what makes a size, and is only guessed to be a tensor, is a number
        if op == "cpu" and fact.device is not DEVICE and isinstance(operand, ast.Attribute) and self._sets_up:
            return  # objects are set up on the host: most often it is there
        self.waits[(id(node), op)] = Wait(
            op, node, operand, fact, min(confidence, fact.confidence, 1 if self.guarded else 3), self.hotness
        )


def on_host_here(frame: Frame, node: ast.expr, fact: Fact) -> None:
    """numpy takes a tensor of the host and refuses any other: what it is given, not copied there before, lives there."""
    path = dotted(node)
    if path and fact.kind is TENSOR and fact.device is not HOST and path in frame.env:
        frame.env[path] = fact.but(device=HOST)


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text; "" when it is not such a chain."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
        return ".".join(reversed(parts))
    return ""


def last_word(node: ast.expr | None) -> str:
    """What people call a value: the name, the attribute or the key by which it is reached."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return key if isinstance(key, str) else last_word(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def evaluate(frame: Frame, node: ast.expr) -> Fact:
    """What an expression gives."""
    return frame.table[node.__class__](frame, node)


def recording() -> dict[type, Callable[[Frame, Any], Fact]]:
    """The same table, each entry keeping what it answered in `frame.seen`."""

    def kept(of: Callable[[Frame, Any], Fact]) -> Callable[[Frame, Any], Fact]:
        def run(frame: Frame, node: Any) -> Fact:
            fact = of(frame, node)
            if frame.seen is not None:
                frame.seen[id(node)] = fact
            return fact

        return run

    return {kind: kept(of) for kind, of in EXPRESSIONS.items()}


def condition(frame: Frame, node: ast.expr) -> Fact:
    """An expression whose truth Python asks for: a tensor is read."""
    if node.__class__ is ast.BoolOp:
        return ASKED[ast.BoolOp](frame, node)
    fact = frame.table[node.__class__](frame, node)
    if fact.confidence == 1 and fact.dtype is BOOL and node.__class__ is ast.BinOp and frame.alone:
        fact = fact.but(confidence=2)  # comparisons of numbers are combined with `and`
    if fact.kind is TENSOR and (fact.confidence > 1 or node.__class__ not in (ast.Name, ast.Attribute)):
        frame.emit("condition", node, node, fact)  # a name that is only guessed to be a tensor is more often a flag
    elif fact is COMPARED and node.__class__ is ast.BinOp:
        guess = tensor(BOOL, confidence=2 if frame.alone else 1, why=node)  # of numbers people say `and`
        frame.emit("condition", node, node, guess)
    return fact


def holds_tensor(fact: Fact) -> Fact | None:
    """The tensor in a value, or in the elements of a tuple or list."""
    if fact.kind is TENSOR:
        return fact
    if fact.kind is SEQUENCE:
        for each in fact.elements:
            if each.kind is TENSOR:
                return each
        each = getattr(fact.ref, "each", UNKNOWN)
        return each if each.kind is TENSOR else None
    return None
