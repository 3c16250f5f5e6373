"""Whether an error that is raised at a place is caught around it: then what is done there is done no more."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.project.syntax import each_of

KEEP_ERRORS = {"suppress", "raises", "assertRaises", "assertRaisesRegex"}
FORGIVEN = {"KeyboardInterrupt", "ImportError", "StopIteration", "ModuleNotFoundError"}  # no rewritten code raises them


def caught(function: Function, node: ast.AST) -> bool:
    """Whether an error that is raised here is caught here: without it, what is done then is done no more."""
    inside = {id(n) for n in (node, *function.around(node))}
    blocks = (n for n in function.around(node) if isinstance(n, (ast.Try, ast.With, ast.AsyncWith)))
    return any(swallows(function, b) and any(id(s) in inside for s in b.body) for b in blocks)


def swallows(function: Function, block: ast.Try | ast.With | ast.AsyncWith) -> bool:
    """Whether what a block raises may not go further: it has handlers, or a context that keeps errors, `suppress(...)`."""
    if isinstance(block, ast.Try):
        return any(not forgives(h) for h in block.handlers)
    calls = (i.context_expr.func for i in block.items if isinstance(i.context_expr, ast.Call))
    return any(_keeps_errors(function, ast.unparse(called).rpartition(".")[2]) for called in calls)


def _keeps_errors(function: Function, name: str) -> bool:
    """Whether a context of this name is known to keep errors, or is a class of the file whose `__exit__` may."""
    if name in KEEP_ERRORS:
        return True
    classes = (c for c in function.file.classes if c.name == name)
    exits = (m for c in classes for m in c.body if getattr(m, "name", "") in ("__exit__", "__aexit__"))
    given = (n.value for e in exits for n in ast.walk(e) if isinstance(n, ast.Return) and n.value is not None)
    return any(not (isinstance(v, ast.Constant) and not v.value) for v in given)


def forgives(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for what no rewritten code raises."""
    names = each_of(handler.type) if handler.type is not None else []
    return bool(names) and all(isinstance(n, ast.Name) and n.id in FORGIVEN for n in names)
