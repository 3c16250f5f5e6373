"""The loop of a function that asks for it, as a function of its own: so it can be run once more, and led.

with syncscope.trace() as trace:
    for batch in loader:                    def loop(loader, model, trace, ...):     # all names of the function
        loss = train(model, batch)    →         for batch in turns.over(loader, site):
        trace.step()                                ...
trace.try_fixes()
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from syncscope.errors import UserError
from syncscope.turns.loops import FUNCTIONS, led, may_step
from syncscope.turns.selector import NAME
from syncscope.verify.swapped import alike, nested

SITE = 1_000_000_000  # from which on its loops are numbered
WANTED = (
    "give it what makes one step: trace.try_fixes(lambda: train_step(batch)); or try the whole program: "
    "`syncscope run --try train.py`"
)
Loop = ast.For | ast.While


class CallersLoop:
    """The innermost loop around the line that a function is at, else the last before it, in which one of these names is called.

    Raises:
        UserError: there is none, or it cannot be run once more.
    """

    def __init__(self, frame: FrameType, path: str, tree: ast.Module, names: Collection[str]) -> None:
        self._frame, self._path, self._tree, self._names = frame, path, tree, names
        self._scope = _scope(frame.f_code, path, tree)
        found = [node for node in _own(self._scope) if isinstance(node, Loop) and may_step(node, names)]
        around = [node for node in found if node.lineno <= frame.f_lineno <= (node.end_lineno or 0)]
        before = [node for node in found if (node.end_lineno or 0) < frame.f_lineno]
        if not around and not before:
            raise UserError("trace.try_fixes() stands in no loop that makes steps, and behind none", WANTED)
        self._loop = around[-1] if around else max(before, key=lambda node: (node.end_lineno or 0, node.lineno))
        if why := self._why_not():
            raise UserError(
                f"{os.path.relpath(path)}:{self._loop.lineno}: this loop cannot be begun again: {why}", WANTED
            )

    def made(self, woven: Mapping[str, ast.Module]) -> tuple[Callable[[], object], int, CodeType]:
        """What runs it, as it is in the tree of all versions of its file; the site by which it is led; and its code."""
        tree = woven.get(self._path, self._tree)
        loop = next(
            node for node in ast.walk(tree) if type(node) is type(self._loop) and node.lineno == self._loop.lineno
            and node.col_offset == self._loop.col_offset
        )  # fmt: skip
        own = led(ast.Module([loop], []), self._names, SITE)
        # loops inside of it have theirs before
        site = SITE + sum(1 for node in ast.walk(own) if _asks_for_site(node)) - 1
        frame, of_module = self._frame, isinstance(self._scope, ast.Module)
        known = {} if of_module else {name: value for name, value in frame.f_locals.items() if name.isidentifier()}
        if not of_module:
            own = ast.Module([self._function(own.body, known)], [])
        code = compile(ast.fix_missing_locations(own), self._path, "exec", dont_inherit=True)
        if of_module:
            return lambda: exec(code, frame.f_globals), site, code
        made: dict[str, Any] = {}
        exec(code, frame.f_globals, made)
        function = made[frame.f_code.co_name]
        return lambda: function(**known), site, code

    def _function(self, body: list[ast.stmt], known: Collection[str]) -> ast.stmt:
        made = ast.parse(f"def {self._frame.f_code.co_name}({', '.join(known)}): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = [*(node for node in _own(self._scope) if isinstance(node, ast.Global)), *body]
        return made

    def _why_not(self) -> str:
        code, frame = self._frame.f_code, self._frame
        inside = [self._loop, *_own(self._loop)]
        names = {node.id for node in inside if isinstance(node, ast.Name)}
        if "super" in names:
            return "it says super()"
        stored = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        if shared := stored & {*code.co_freevars, *code.co_cellvars}:
            return f"it sets {min(shared)}, which another function uses"
        if isinstance(self._loop, ast.For):
            for node in ast.walk(self._loop.iter):
                if isinstance(node, ast.Name):
                    value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
                    if hasattr(type(value), "__next__"):
                        return f"it is over {node.id}, and what that has given is gone"
        return ""


def _scope(code: CodeType, path: str, tree: ast.Module) -> ast.AST:
    """The function of a file in which this code stands, or its module."""
    if code.co_name == "<module>":
        return tree
    written = next((c for c in nested(compile(tree, path, "exec", dont_inherit=True)) if alike(c, code)), None)
    for node in ast.walk(tree):
        if written is not None and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if (node.name, first) == (code.co_name, code.co_firstlineno):
                return node
    raise UserError(f"{os.path.relpath(path)} holds other text than what runs", WANTED)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, a module or a loop, without what stands in functions there; outer things first."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def _asks_for_site(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("over", "more") and getattr(node.value, "id", "") == NAME
