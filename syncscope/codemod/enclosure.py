"""A function's nodes by place: who encloses whom, which statements stand side by side, which loop repeats what."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from syncscope.codemod.text import Text
from syncscope.project.syntax import parents, statements

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
BODIES = ("body", "orelse", "finalbody")
LOOPS = (ast.For, ast.AsyncFor, ast.While)
CONDITIONAL = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)


class Enclosure:
    """The nodes of a function, or of a module where code stands in none; they are those of the file's `ast`."""

    def __init__(self, file: Text, scope: ast.AST) -> None:
        self.file = file
        self.scope = scope

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return parents(self.scope)

    @cached_property
    def depth(self) -> int:
        """How many levels of nodes there are."""
        last = next(reversed(self._parents), None)  # level by level, the deepest come last
        return 1 + (sum(1 for _ in self.around(last)) if last is not None else 0)

    @cached_property
    def _by_kind(self) -> dict[type, list[Any]]:
        found: dict[type, list[Any]] = defaultdict(list)
        found[self.scope.__class__].append(self.scope)
        for node in self._parents:
            found[node.__class__].append(node)
        return found

    def every(self, *kinds: type[ast.AST]) -> list[Any]:
        """Its nodes of these kinds, itself among them, kind by kind in the order of `ast.walk`."""
        return [node for kind in kinds for node in self._by_kind.get(kind, ())]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node directly around this one; None for the function itself and for nodes that are not in it."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around this one, from the inside out, the function itself last."""
        at = self.parent(node)
        while at is not None:
            yield at
            at = self.parent(at)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that holds this node."""
        at: ast.AST | None = node
        around = self._parents
        while at is not None and not isinstance(at, ast.stmt):
            at = around.get(at)
        return at

    @cached_property
    def _blocks(self) -> dict[ast.AST, list[ast.stmt]]:
        bodies = (getattr(n, name, None) for n in statements(self.scope) for name in BODIES)
        return {statement: body for body in bodies if isinstance(body, list) for statement in body}

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which this one stands; none for the function itself."""
        return self._blocks.get(statement, [])

    def beside(self, statement: ast.stmt, node: ast.AST) -> ast.AST | None:
        """What stands in one block with a statement: this node, or one around it."""
        block = self.block(statement)
        return next((n for n in (node, *self.around(node)) if self._blocks.get(n) is block), None)

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement that begins its line."""
        start = self.file.starts[statement.lineno - 1]
        return self.file.code[start : start + statement.col_offset].decode()

    def alone(self, statement: ast.stmt) -> bool:
        """Whether nothing else stands on the lines of a statement but a comment."""
        span = self.file.span(statement)
        stop = self.file.code.find(b"\n", span.end)
        rest = self.file.code[span.end : stop if stop >= 0 else None].strip()
        return not self.indent(statement).strip() and (not rest or rest.startswith(b"#"))

    def loop(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop whose body this node runs in."""
        child = node
        for n in self.around(node):
            if isinstance(n, SCOPES):
                return None
            if isinstance(n, LOOPS) and child in n.body:
                return n
            child = n
        return None

    def printed(self, node: ast.AST) -> bool:
        """Whether code is printed as it is written, `f"{x.item()=}"`: other code in its place prints otherwise."""
        values = (n.value for n in self.around(node) if isinstance(n, ast.FormattedValue))
        return any(self.file.code[self.file.span(v).end :].lstrip(b" \t\r\n)").startswith(b"=") for v in values)

    def sometimes(self, node: ast.AST, loop: ast.AST, other: ast.AST | None = None) -> bool:
        """Whether a node runs on some passes of a loop only, under an `if` in it, and one that is not around `other`."""
        return bool(self.arms(node, loop) - (self.arms(other, loop) if other is not None else set()))

    def arms(self, node: ast.AST, loop: ast.AST) -> set[tuple[int, bool]]:
        """The `if`s around a node within a loop, and whether it stands in their body."""
        found, child = set(), node
        for n in self.around(node):
            if n is loop:
                break
            if isinstance(n, ast.If) and (child in n.body or child in n.orelse):
                found.add((id(n), child in n.body))
            child = n
        return found

    def is_elif(self, statement: ast.If) -> bool:
        """Whether this is the `elif` of another `if`: nothing can be put before it."""
        parent = self.parent(statement)
        if not isinstance(parent, ast.If) or parent.orelse != [statement]:
            return False
        return self.file.code.startswith(b"elif", self.file.span(statement).start)

    def runs_first(self, statement: ast.stmt, node: ast.expr) -> bool:
        """Whether an expression is evaluated once, and always, when its statement runs: code can be put before it."""
        if isinstance(statement, (ast.While, ast.With, ast.For)) or self.parent(statement) is None:
            return False
        if isinstance(statement, ast.If) and self.is_elif(statement):
            return False
        inner: ast.AST = node
        for n in self.around(node):
            if n is self.parent(statement):
                break
            if n is not statement and isinstance(n, CONDITIONAL):
                return False
            if isinstance(n, ast.Compare) and inner in n.comparators[1:]:  # the end of a chain, `0 < a < b`
                return False
            inner = n
        return True
