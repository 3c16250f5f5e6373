"""What woven code asks, as code: which version runs, and what names and lists are to hold for it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from syncscope.turns.filled import Filled
from syncscope.turns.selector import NAME

Body = list[ast.stmt]
Bodies = Mapping[int, Body]


def asked(name: str) -> ast.expr:
    """Where the selector has what is asked."""
    return ast.Attribute(ast.Name(NAME, ast.Load()), name, ast.Load())


def call(name: str, *given: ast.expr) -> ast.expr:
    """The selector asked something."""
    return ast.Call(asked(name), list(given), [])


def by_version(said: ast.expr, bodies: Bodies, written: Body) -> ast.stmt:
    """The statements of the version that is told, each version a case of its own; of all others those as written."""
    cases = [
        ast.match_case(ast.MatchValue(ast.Constant(number)), None, other or [ast.Pass()])
        for number, other in sorted(bodies.items())
    ]
    return ast.Match(said, [*cases, ast.match_case(ast.MatchAs(), None, written or [ast.Pass()])])


def plain(passage: int, name: str) -> Body:
    """`try: name = selector.plain(passage, "name", name)`, which may not be bound yet."""
    known = call("plain", ast.Constant(passage), ast.Constant(name), ast.Name(name, ast.Load()))
    kept = ast.Assign([ast.Name(name, ast.Store())], known)
    unbound = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [ast.Pass()])
    return [ast.Try([kept], [unbound], [], [])]


def alike(name: str, passage: int, lists: Filled, version: int = 0) -> Body:
    """`try: selector.alike(passage, "losses", version, True, losses)` of lists, which may not be bound yet; or `finish`."""
    unbound = ast.Tuple([ast.Name("NameError", ast.Load()), ast.Name("AttributeError", ast.Load())], ast.Load())
    said = []
    for text, versions in sorted(lists.items()):
        known = [ast.Constant(one) for one in (passage, text, version, version in versions)]
        called = ast.Expr(call(name, *known, ast.parse(text, mode="eval").body))
        said.append(ast.Try([called], [ast.ExceptHandler(unbound, None, [ast.Pass()])], [], []))
    return [*said]
