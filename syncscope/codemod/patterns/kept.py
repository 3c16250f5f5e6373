"""Attributes that an object keeps as its `__init__` makes them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from syncscope.codemod.function import Function
from syncscope.project.syntax import parents, walk


def set_by_init(function: Function, name: str) -> bool:
    """Whether an attribute is set once, by the `__init__` of the class around, and nowhere set or written again."""
    owner, used = function.file.class_around(function.scope), function.file.attributes.get(name, ())
    stored = [n for n in used if not isinstance(n.ctx, ast.Load)]
    if owner is None or len(stored) != 1:
        return False
    begun = (s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__")
    if not any(node is stored[0] for each in begun for node in walk(each)):
        return False
    outer = parents(function.file.tree)
    return not any(_is_written(n, outer) for n in used)


def _is_written(node: ast.AST, outer: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether memory is written in place: `self.states[i] = row`, `self.states.zero_()`."""
    above = outer.get(node)
    while isinstance(above, ast.Subscript) and above.value is node:
        if not isinstance(above.ctx, ast.Load):
            return True
        node, above = above, outer.get(above)
    match above:
        case ast.Attribute(attr=word, value=value):
            return value is node and word.endswith("_") and not word.endswith("__")
        case ast.AugAssign(target=target):
            return target is node
    return False
