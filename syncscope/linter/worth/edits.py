"""What edits leave of the waits that they stand around."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from syncscope.linter.overlaps import Overlaps
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Finding
from syncscope.model.ops import Op
from syncscope.model.source import Span
from syncscope.project.syntax import each_of


def replaced(states: Mapping[int, Finding]) -> Overlaps[Edit]:
    """What the fixes of all findings replace."""
    return Overlaps((e.span, e) for f in states.values() if f.fix is not None for e in f.fix.edits)


def goes_along(site: Site, states: Mapping[int, Finding], gone: Overlaps[Edit]) -> bool:
    """Whether it is a number put at positions which the fix of another no longer looks for: told with that one alone."""
    own = states.get(id(site))
    if site.op is not Op.NUMBER_WRITE or own is None or own.fix is not None:
        return False
    return any(
        e.span.start <= own.span.start and own.span.end <= e.span.end and not still_writes(e, site)
        for e in gone.of(own.span)
    )


def still_writes(edit: Edit, site: Site) -> bool:
    """Whether an edit in which a number is written at positions writes it at the same ones, wherever they are made then."""
    try:
        (statement,) = ast.parse(edit.text.strip()).body
    except (SyntaxError, ValueError):
        return False
    match statement, site.node:
        case ast.Assign(targets=[ast.Subscript(slice=index)]), ast.Subscript(slice=before):
            return [*map(_wherever, each_of(index))] == [*map(_wherever, each_of(before))]
    return False


def _wherever(part: ast.expr) -> str:
    """A part of an index, without what says where it lives: `torch.arange(n)` of `torch.arange(n, device=d)`."""
    match part:
        case ast.Call(func=ast.Attribute(value=sent, attr="to")):
            return _wherever(sent)
        case ast.Call(func=func, args=args, keywords=keywords):
            return ast.unparse(ast.Call(func, args, [each for each in keywords if each.arg != "device"]))
    return ast.unparse(part)


def written_again(edit: Edit, site: Site, code: bytes) -> bool:
    """Whether an edit that a wait stands in writes it down again, perhaps of something else: `y.sum().item()` is still read."""
    old = code[edit.span.start : edit.span.end].decode()
    if code[site.span.start : site.span.end].decode() in edit.text:
        return True
    match site.node:
        case ast.Call(func=ast.Attribute(attr=name)):
            word = f".{name}("
        case ast.Call(func=ast.Name(id=name)):
            word = f"{name}("
        case _:
            return False
    return edit.text.count(word) >= old.count(word)


def holds(outer: Span, inner: Span) -> bool:
    """Whether a span lies in another, and is not the whole of it."""
    return outer.start <= inner.start and inner.end <= outer.end and outer != inner
