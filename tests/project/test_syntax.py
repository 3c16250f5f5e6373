"""The walks over syntax trees find what `ast.walk` finds, in its order."""

import ast
from pathlib import Path

import pytest

import syncscope
from syncscope.project.syntax import parents, statements, walk

LEFT_OUT = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.type_ignore)
EVERYTHING = """
from a import b as c
@d
class E[f](g, h=i):
    global j
    async def k(l, /, m: n = o, *p, q, r=s, **t) -> u:
        nonlocal v
        async with w as x, y:
            await z
        async for a in b:
            yield c
        else:
            yield from d
        try:
            raise e from f
        except* g as h:
            assert i, j
        else:
            del k
        finally:
            return lambda l, *m, n=o, p: {**q, r: s, 't': {u, *v}}
while a := b:
    match c:
        case [d, *e] | {'f': g, **h} if i: pass
        case J(k, l=m) as n: continue
        case None: break
        case o.p: x[q:r:s, ...] += t if not u else f"{v!r:>{w}}"
type A[B: C] = D
e: f = [g < h == i for j in k if l and m]
"""
SOURCES = sorted(Path(syncscope.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("source", [EVERYTHING, *(path.read_text("utf-8") for path in SOURCES[::5])], ids=len)
def test_every_node_once_and_in_order(source):
    try:
        tree = ast.parse(source)
    except SyntaxError:  # what a newer Python knows
        tree = ast.parse(source.replace("E[f]", "E").replace("type A[B: C] = D", ""))
    every = [node for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)]
    assert walk(tree) == every
    assert list(parents(tree)) == every[1:]
    assert all(child in ast.iter_child_nodes(parent) for child, parent in parents(tree).items())
    kinds = (ast.mod, ast.stmt, ast.excepthandler, ast.match_case)
    assert statements(tree) == [node for node in every if isinstance(node, kinds)]
