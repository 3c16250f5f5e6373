"""The `for` around a line whose passes need nothing of one another, so that one call could make them all: by syntax alone.

```python
for image in range(batch):        # apart: what a pass reads, it has made or found
    losses.append(loss_of(scores[image]))
for _ in range(steps):            # not apart: each pass reads the token that the one before it made
    token = model(token).argmax()
```

Sums (`total += x`) and lists that grow are apart. A loop that may end early, or that trains, is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from syncscope.model.source import Place

TRAINS = {"backward", "step", "zero_grad"}  # methods: each pass changes what the next one computes with
EARLY = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def loops_apart(sources: Mapping[str, bytes], places: Iterable[Place]) -> dict[Place, int]:
    """The line of the innermost `for` around each of these places whose passes are apart; what is not Python has none."""
    found: dict[Place, int] = {}
    trees: dict[str, ast.Module | None] = {}
    for place in places:
        if place.path not in trees:
            trees[place.path] = _parsed(sources.get(place.path, b""))
        tree = trees[place.path]
        loop = None if tree is None else _innermost(tree, place.line)
        if loop is not None and _apart(loop):
            found[place] = loop.lineno
    return found


def _parsed(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _innermost(tree: ast.Module, line: int) -> ast.For | None:
    """The `for` in whose body the line stands, within its own function."""
    found: ast.For | None = None
    body: list[ast.AST] = [tree]
    while body:
        around = next((n for node in body for n in ast.iter_child_nodes(node) if _spans(n, line)), None)
        if around is None:
            return found
        if isinstance(around, SCOPES):
            found = None
        elif isinstance(around, (ast.For, ast.AsyncFor, ast.While)):
            inside = isinstance(around, ast.For) and _spans_any(around.body, line)
            found = around if inside and isinstance(around, ast.For) else None
        body = [around]
    return found


def _spans(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", None) or 0)


def _spans_any(nodes: Iterable[ast.stmt], line: int) -> bool:
    return any(_spans(node, line) for node in nodes)


def _apart(loop: ast.For) -> bool:
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, EARLY) for node in inside):
        return False
    called = {n.func.attr for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    if called & TRAINS:
        return False
    order = _Order()
    order.visit(loop.target)
    if not _differ(inside, order.made) or _written_and_read(inside):
        return False
    made_before = set(order.made)
    for statement in loop.body:
        order.visit(statement)
    sums = order.summed - order.loaded
    return not (order.asked & (order.ever - made_before) - sums)


def _differ(inside: list[ast.AST], given: set[str]) -> bool:
    """Whether passes ask for what the loop gives them: else they differ by what the one before did, as a game's moves do."""
    return any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in given for node in inside)


def _written_and_read(inside: list[ast.AST]) -> bool:
    """Whether parts of something are written that is read, too: `costs[row] = inf` beside `costs.argmin()`."""
    written = [n.value for n in inside if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store | ast.Del)]
    names = {node.id for node in written if isinstance(node, ast.Name)}
    at = {id(node) for node in written}
    return any(isinstance(node, ast.Name) and node.id in names and id(node) not in at for node in inside)


class _Order(ast.NodeVisitor):
    """What a pass reads before it has surely made it (`asked`), in the order in which Python evaluates."""

    def __init__(self) -> None:
        self.made: set[str] = set()  # surely, by now
        self.ever: set[str] = set()  # somewhere in the pass
        self.asked: set[str] = set()
        self.loaded: set[str] = set()
        self.summed: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self._meet(node.id, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self._meet(f"{node.value.id}.{node.attr}", node.ctx)
        self.visit(node.value)

    def _meet(self, name: str, context: ast.expr_context) -> None:
        if isinstance(context, ast.Load):
            self.loaded.add(name)
            if name not in self.made:
                self.asked.add(name)
        else:
            self.made.add(name)
            self.ever.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        for part in (node.value, *node.targets):
            self.visit(part)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        target = ast.unparse(node.target)
        self.ever.add(target)
        if target not in self.made:
            self.asked.add(target)
            if isinstance(node.op, ast.Add):
                self.summed.add(target)
            else:
                self.loaded.add(target)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._maybe(node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._maybe([node.target, *node.body, *node.orelse], [])

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._maybe([*node.body, *node.orelse], [])

    def _maybe(self, *arms: Iterable[ast.AST]) -> None:
        """Only what all arms make is surely made."""
        before, ends = set(self.made), []
        for arm in arms:
            self.made = set(before)
            for node in arm:
                self.visit(node)
            ends.append(self.made)
        self.made = set.intersection(*ends)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before, ever = set(self.made), set(self.ever)
        for part in node.generators:
            for inner in (part.iter, part.target, *part.ifs):
                self.visit(inner)
        for value in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(value)
        self.made, self.ever = before, ever

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815
