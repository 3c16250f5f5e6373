"""What a name starts with before a loop adds to it: `total = 0.0`, `a, b = 0.0, []`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function


def starting(function: Function, name: str) -> list[tuple[ast.Assign, ast.expr]]:
    """The values that a name is given, alone, in a chain, or beside others, `a, b = 0.0, 0`, and the assignments that do."""
    found = [(s, s.value) for s in assigned(function, name)]
    for bound in function.binds(name):
        side = function.parent(bound)
        assign = function.parent(side) if isinstance(side, ast.Tuple) else None
        values = assign.value if isinstance(assign, ast.Assign) else None
        if isinstance(side, ast.Tuple) and isinstance(values, ast.Tuple) and len(side.elts) == len(values.elts):
            assert isinstance(assign, ast.Assign)
            found.append((assign, values.elts[side.elts.index(bound)]))
    return found


def assigned(function: Function, name: str) -> list[ast.Assign]:
    """The assignments to a name, alone or in a chain `a = b = 0.0`."""
    parents = (function.parent(n) for n in function.binds(name))
    return [p for p in parents if isinstance(p, ast.Assign)]


def seen_half_done(function: Function, name: str, loop: ast.AST) -> bool:
    """Whether code may see what a name holds within a loop: a function that reads it, or what follows an error in the loop."""
    if function.captured(name):
        return True
    around = [loop, *function.around(loop)]
    tried = [n.body[-1].end_lineno or 0 for n in around if isinstance(n, ast.Try) and any(s in around for s in n.body)]
    return any(read.lineno > end for end in tried for read in function.reads(name))
