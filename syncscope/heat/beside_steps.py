"""Cold by who calls it in its file: a training loop beside its steps, as an early stopping, or what loads a state."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from syncscope.heat import blocks
from syncscope.heat.loops import at_top
from syncscope.heat.registered import called_with_state
from syncscope.model.heat import Heat, Reason, Role
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import name_of, parents, walk

_ENTRANCES = frozenset(("forward", "__call__"))  # methods that run where an object is called
_ASKS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp)  # whether there is such an object
_BY_OTHERS = (Role.SHARED, Role.CALLED)

Named = Mapping[str, list[ast.Name | ast.Attribute]]


def called_beside_steps(function: ProjectFunction) -> Heat | None:
    """What is said of a function, or of a method of a class whose objects are given names and not handed on, of which each call
    stands in a function that trains, outside of its loop over steps, and of what is called with a state; else None."""
    module, cls = function.module, function.cls
    if called_with_state(function):
        return Reason.OF_STATE(function.name)
    if function.closure is not None or not (training := _training(module)):
        return None
    if module.project.role(module.path, function.name, cls.name if cls is not None else "") in _BY_OTHERS:
        return None
    named, around = _named(module.tree), parents(module.tree)
    called = cls is None or function.name in _ENTRANCES
    names = {function.name} if cls is None else _objects(cls.name, named, around)
    if cls is not None and any(called or name_of(_owner(each)) not in names for each in named.get(function.name, ())):
        return None
    said: Heat | None = None
    for use in (each for name in names for each in named.get(name, ())):
        at, outer = use, around[use]
        if isinstance(outer, ast.Attribute):
            if called or outer.attr != function.name:
                continue
            at, outer = outer, around[outer]
        if isinstance(outer, ast.Call) and outer.func is at:
            root = training.get(_function_around(outer, around))
            heat = blocks.of_call(root, outer, module.source) if root is not None else None
            if heat is None or heat.hot:
                return None
            said = Reason.CALLED_COLD(name_of(use), of=heat)
        elif not isinstance(outer, _ASKS):
            return None
    return said


@kept(4)
def _training(module: Module) -> dict[ast.AST | None, blocks.Function]:
    """The functions of a file that hold a training loop; None for what stands in no function."""
    found: dict[ast.AST | None, blocks.Function] = {
        each.node: each.node for each in module.top if blocks.trains(each.node, module.source)
    }
    top = at_top(module.tree)
    return found | {None: top} if top is not None else found


@kept(4)
def _named(tree: ast.Module) -> Named:
    """Where the names and the attributes of a file are read."""
    found: dict[str, list[ast.Name | ast.Attribute]] = defaultdict(list)
    for node in walk(tree):
        kind = node.__class__  # of each node of a file it is asked: by class, which is faster than isinstance
        if (kind is ast.Name or kind is ast.Attribute) and node.ctx.__class__ is ast.Load:  # type: ignore[attr-defined]
            found[node.id if kind is ast.Name else node.attr].append(node)  # type: ignore[attr-defined, arg-type]
    return found


def _objects(cls: str, named: Named, around: Mapping[ast.AST, ast.AST]) -> set[str]:
    """What the objects of a class are called in its file; nothing where one has no name, or the class is more than called."""
    found: set[str] = set()
    for use in named.get(cls, ()):
        made: Any = around[use]
        if not isinstance(made, ast.Call) or made.func is not use:
            return set()
        outer = around[made]
        if isinstance(outer, ast.IfExp):
            made, outer = outer, around[outer]
        match outer:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value) if value is made:
                found.add(name_of(target))
            case _:
                return set()
    return found


def _owner(node: ast.expr) -> ast.expr | None:
    return node.value if isinstance(node, ast.Attribute) else None


def _function_around(node: ast.AST, around: Mapping[ast.AST, ast.AST]) -> ast.AST | None:
    """The outermost function that a node stands in."""
    found, at = None, around.get(node)
    while at is not None:
        found = at if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)) else found
        at = around.get(at)
    return found
