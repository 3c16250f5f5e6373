"""Loops that may make the steps of a program, woven so that they can be led: iterations come again, no loop is left meanwhile.

    for x in loader:                  for x in turns.over(loader, 3):
        if done(x):                       try:
            break               →             if done(x):
        step(x)                                   turns.leave(3)
                                                  break
                                              step(x)
                                          except:
                                              if not turns.caught(3): raise

A `while` asks `turns.more` before it ends, and `turns.round` as each of its rounds begins. `next(it)` is `turns.given(it)`.
What these names do is in `turns.leading`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from syncscope.turns.asking import asked, call
from syncscope.turns.leading import RETURN
from syncscope.turns.statements import OwnStatements
from syncscope.turns.weaving import unless_compiled

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OWN = (*FUNCTIONS, ast.ClassDef)  # what stands in them is theirs
STEPPING = frozenset({"step", "backward"})


def stepping(trees: Collection[ast.Module], first: Collection[str] = STEPPING) -> set[str]:
    """Names of methods and functions that make a step, or call one that does, as far as names tell; `first` are known."""
    calls = [
        (node.name, set(_called(node)))
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "forward"
    ]
    found = set(first)
    while more := {name for name, called in calls if name not in found and called & found}:
        found |= more
    return found


def led(tree: ast.Module, names: Collection[str], first: int = 0) -> ast.Module:
    """The tree with all loops led in which one of these names is called; their sites are numbered from `first` on."""
    found: ast.Module = _Led(names, first, _rebinds_next(tree)).visit(tree)
    return ast.fix_missing_locations(found)


def around_a_loop(tree: ast.Module, line: int, names: Collection[str]) -> bool:
    """Whether the function or loop that begins at this line goes on while a loop in it calls one of these names."""
    units = (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)
    unit = next((node for node in ast.walk(tree) if isinstance(node, units) and node.lineno == line), None)
    inside = list(_own(unit.body)) if unit is not None else []
    return any(isinstance(one, ast.For | ast.While) and may_step(one, names) for one in inside)


def runs_once(tree: ast.Module, line: int) -> bool:
    """Whether the function that begins at this line is called in one place only, which the file itself comes to once."""
    name = next((node.name for node in tree.body if isinstance(node, FUNCTIONS[:2]) and node.lineno == line), None)
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    outside = [node for node in _own(tree.body) if isinstance(node, ast.Call) and node.func in named]
    loops = [node for node in _own(tree.body) if isinstance(node, ast.For | ast.While)]
    return len(named) == len(outside) == 1 and not any(outside[0] in ast.walk(loop) for loop in loops)


def may_step(loop: ast.For | ast.While, names: Collection[str]) -> bool:
    """Whether one of these names is called in it. Not where it is suspended in its middle: whoever goes on then is not led."""
    inside = list(_own(loop.body))
    if any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith) for one in inside):
        return False
    return any(_name_of(one) in names for one in inside)


class _Led(ast.NodeTransformer):
    def __init__(self, names: Collection[str], first: int, rebinds_next: bool) -> None:
        self._names, self._site, self._rebinds_next = names, first, rebinds_next

    def visit_For(self, node: ast.For) -> ast.stmt:
        """A loop over something."""
        self.generic_visit(node)
        if may_step(node, self._names):
            site, self._site = self._site, self._site + 1
            node.iter = ast.copy_location(call("over", node.iter, ast.Constant(site)), node.iter)
            node.body = [_caught(node, site)]
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        """A loop with a condition."""
        self.generic_visit(node)
        if may_step(node, self._names):
            site, self._site = self._site, self._site + 1
            more = ast.copy_location(call("more", ast.Constant(site)), node.test)
            node.test = ast.copy_location(ast.BoolOp(ast.Or(), [node.test, more]), node.test)
            begins = ast.copy_location(ast.Expr(call("round", ast.Constant(site))), node)
            node.body = [begins, _caught(node, site)]
        return node

    visit_FunctionDef = visit_ClassDef = unless_compiled  # noqa: N815  names that ast asks for

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`next(it)` and `next(it, other)`."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "next" and not (self._rebinds_next or node.keywords):
            node.func = ast.copy_location(asked("given"), node.func)
        return node


class _Leaving(OwnStatements, ast.NodeTransformer):
    """What would leave a loop says so before; what returns in a function in it leaves that one."""

    def __init__(self, site: int) -> None:
        self._site, self._depth = site, 0

    def visit_Break(self, node: ast.Break) -> ast.stmt | list[ast.stmt]:
        """Of a loop inside, it is that loop's."""
        return node if self._depth else [_said("leave", self._site, node), node]

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """From any depth."""
        return [_said("leave", RETURN, node), node]

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Its `else` is no part of it."""
        return self._inside(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        """The same."""
        return self._inside(node)

    def _inside(self, node: ast.For | ast.While) -> ast.stmt:
        self._depth += 1
        node.body = [one for statement in node.body for one in _listed(self.visit(statement))]
        self._depth -= 1
        node.orelse = [one for statement in node.orelse for one in _listed(self.visit(statement))]
        return node


def _caught(loop: ast.For | ast.While, site: int) -> ast.stmt:
    """The body, and what becomes of what is raised in it."""
    leaving = _Leaving(site)
    body = [one for statement in loop.body for one in _listed(leaving.visit(statement))]
    not_ours = ast.UnaryOp(ast.Not(), call("caught", ast.Constant(site)))
    handler = ast.ExceptHandler(None, None, [ast.If(not_ours, [ast.Raise(None, None)], [])])
    return ast.copy_location(ast.Try(body, [handler], [], []), loop)


def _said(name: str, site: int, where: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(call(name, ast.Constant(site))), where)


def _listed(found: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _own(body: Collection[ast.stmt]) -> Iterator[ast.AST]:
    """What stands in a body, without what stands in functions and classes there."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, OWN):
            todo += ast.iter_child_nodes(node)


def _called(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if name := _name_of(one):
            yield name


def _name_of(node: ast.AST) -> str:
    """The last part of the name of what is called; "" of anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _rebinds_next(tree: ast.Module) -> bool:
    """Whether the file has a `next` of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "next" and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == "next":
            return True
        if isinstance(node, ast.arg | ast.alias) and "next" in (getattr(node, "arg", ""), getattr(node, "asname", "")):
            return True
    return False
