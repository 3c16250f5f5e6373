"""Patterns of `match`: each as the test that an `if` would ask, and what its names are given."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors.bindings import bind
from syncscope.tensors.facts import items
from syncscope.tensors.frame import Frame
from syncscope.tensors.joins import element


def asked(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """What a value is asked before a pattern fits, written as a test: `case Tensor():` asks `isinstance(x, Tensor)`."""
    test: ast.expr | None = None
    match pattern:
        case ast.MatchClass(cls=cls):
            test = ast.Call(ast.Name("isinstance", ast.Load()), [subject, cls], [])
        case ast.MatchValue(value=value):
            test = ast.Compare(subject, [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            test = ast.Compare(subject, [ast.Is()], [ast.Constant(value)])
        case ast.MatchAs(pattern=inner) if inner is not None:
            return asked(subject, inner)
        case ast.MatchOr(patterns=parts):
            each = [found for part in parts if (found := asked(subject, part)) is not None]
            test = ast.BoolOp(ast.Or(), each) if len(each) == len(parts) else None
    return ast.copy_location(test, pattern) if test is not None else None


def asks_more(pattern: ast.pattern) -> bool:
    """Whether more is asked than the test says, so that a value that passes it may still not fit: `case Tensor(ndim=2):`."""
    return any(
        isinstance(each, (ast.MatchSequence, ast.MatchMapping))
        or (isinstance(each, ast.MatchClass) and (each.patterns or each.kwd_patterns))
        for each in ast.walk(pattern)
    )


def bind_names(frame: Frame, pattern: ast.pattern, fact: Fact) -> None:
    """Give the names of a pattern what they stand for in a value that fits."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            if inner is not None:
                bind_names(frame, inner, fact)
            if name is not None:
                bind(frame, ast.Name(name, ast.Store()), fact)
        case ast.MatchSequence(patterns=parts):
            starred = next((at for at, part in enumerate(parts) if isinstance(part, ast.MatchStar)), len(parts))
            for at, part in enumerate(parts):
                bind_names(frame, part, element(fact, at if at < starred else at - len(parts)))
        case ast.MatchStar(name=name) if name is not None:
            bind(frame, ast.Name(name, ast.Store()), items(fact))
        case ast.MatchClass(patterns=parts, kwd_patterns=named):
            for part in (*parts, *named):
                bind_names(frame, part, UNKNOWN)
        case ast.MatchMapping(patterns=parts):
            for part in parts:
                bind_names(frame, part, UNKNOWN)
        case ast.MatchOr(patterns=parts):
            for part in parts:
                bind_names(frame, part, fact)
