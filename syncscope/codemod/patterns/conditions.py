"""Conditions that are tensors: what is asked, as a bool tensor, and the two ways as one `torch.where`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.bounds import bounded
from syncscope.codemod.proofs import no_dimensions, same_shape, unlike_ranks
from syncscope.codemod.templates import Part
from syncscope.codemod.whereabouts import made_on_host
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

BOTH = (
    "both ways are computed on every pass and must be of one dtype, and NaN or inf in the gradient of the way not taken "
    "comes through"
)

BOUNDED = (
    "a root, logarithm, power or exponential that overflows has a gradient of NaN: take it of torch.where(c, x, 1), with the "
    "condition c"
)


def test_of(site: Site, function: Function) -> ast.expr | None:
    """The whole condition that a site is part of: what stands behind `if`, or before `if` in an expression."""
    node = site.node
    while isinstance(parent := function.parent(node), (ast.BoolOp, ast.UnaryOp)):
        if isinstance(parent, ast.UnaryOp) and not isinstance(parent.op, ast.Not):
            break
        node = parent
    if isinstance(node, (ast.If, ast.Assert, ast.IfExp, ast.While)):
        node = node.test
    return node if isinstance(node, ast.expr) else None


def decided_by(site: Site, function: Function) -> ast.If | None:
    """The `if` whose whole condition a site is part of, where another statement can take its place."""
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or function.is_elif(statement):
        return None
    return statement


def predicate(function: Function, test: ast.expr, negated: bool = False) -> str | None:
    """The condition as a bool tensor: a template whose only holes are the user's own expressions, see `holes`."""
    if (found := seen(function, test, "not {it}")) is not None:
        return predicate(function, found["it"], not negated)
    if isinstance(test, ast.BoolOp):
        if negated:
            inner = predicate(function, test)
            return None if inner is None else f"~({inner})"
        parts = [predicate(function, v) for v in test.values]
        if None in parts or not all(function.pure(v) for v in test.values):
            return None
        return (" & " if isinstance(test.op, ast.And) else " | ").join(
            p if p and p.endswith("}") else f"({p})" for p in parts
        )
    fact = function.fact(test)
    if not fact.is_tensor or fact.ndim not in (0, None) or mixed(function, test):
        return None
    hole = f"{{{key(test)}}}"
    if fact.dtype is Dtype.BOOL:
        return f"~{hole}" if negated else hole
    if fact.dtype is Dtype.UNKNOWN:
        return None
    return f"{hole} {'==' if negated else '!='} 0"


def key(node: ast.expr) -> str:
    """The name of a hole for this expression."""
    return f"at_{node.lineno}_{node.col_offset}_{node.end_lineno}_{node.end_col_offset}"


def holes(test: ast.expr) -> dict[str, ast.expr]:
    """What fills the holes of `predicate`."""
    return {key(n): n for n in ast.walk(test) if isinstance(n, ast.expr)}


def alike(function: Function, a: ast.expr, b: ast.expr) -> Safety | None:
    """How sure it is that two values are tensors that `where` may mix: of one shape, or one of them a number written out.

    SUGGEST where only their shapes are not proved; None where they cannot be mixed: by the device, say, what lives on the host.
    """
    if waits(function, a) or waits(function, b) or ends_graph(function, a) or ends_graph(function, b):
        return None
    one, other = function.fact(a), function.fact(b)
    if any(fact.ndim != 0 and made_on_host(function, way) for way, fact in ((a, one), (b, other))):
        return None
    for number, tensor in ((a, other), (b, one)):
        if function.constant(number) is not None and tensor.is_tensor:
            return Safety.UNSAFE if tensor.dtype is Dtype.FLOAT else None
    if not one.is_tensor or not other.is_tensor or min(one.confidence, other.confidence) < 2:
        return None
    if unlike_ranks(function, a, b):
        return None
    if one.dtype is not other.dtype and Dtype.UNKNOWN not in (one.dtype, other.dtype):
        return None
    proved = (no_dimensions(function, a) and no_dimensions(function, b)) or same_shape(function, a, b)
    unsure = mixed(function, a) or mixed(function, b)
    return Safety.UNSAFE if proved else None if unsure else Safety.SUGGEST


def mixing(draft: Draft, title: str, a: ast.expr, b: ast.expr) -> Fix:
    """What was drafted, as a fix that mixes two values with `where`."""
    safety = alike(draft.function, a, b)
    assert safety is not None
    text = draft.file.quote
    shape = f"{text(a)} and {text(b)} must have one shape" if safety is Safety.SUGGEST else ""
    ways = [way for way in (a, b) if divides(draft.function, way)]
    if ways:  # by what the condition keeps from being zero, mostly
        cured = all(divisor(draft.function, way) is not None for way in ways)
        end = ", so the divisor is 1 where it is 0" if cured else ": divide by torch.where(d != 0, d, 1)"
        return draft.fix(title, Safety.SUGGEST, shape, f"a division by zero has a gradient of NaN{end}", BOTH)
    if any(bounded(draft.function, way, _tensors(draft.function, way)) for way in (a, b)):
        return draft.fix(title, Safety.SUGGEST, shape, BOUNDED, BOTH)
    return draft.fix(title, safety, shape, BOTH)


def undivided(draft: Draft, way: ast.expr) -> Part:
    """A way as it is written behind `where`: where it is divided by a name, by 1 in place of 0, whose gradient is NaN."""
    by = divisor(draft.function, way)
    if by is None or not isinstance(way, ast.BinOp):
        return way
    return draft.part("{x} / torch.where({d} != 0, {d}, 1)", x=way.left, d=by)


def divisor(function: Function, way: ast.expr) -> ast.expr | None:
    """The name that a way divides by, a tensor, in the one division that it is."""
    match way:
        case ast.BinOp(op=ast.Div(), left=left, right=ast.Name() | ast.Attribute() as right) if (
            not divides(function, left) and function.fact(right).is_tensor
        ):
            return right
    return None


def divides(function: Function, way: ast.expr) -> bool:
    """Whether a way divides by a tensor, which may be zero where the condition keeps it from running."""
    divisions = (
        n for n in ast.walk(way) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.Mod, ast.FloorDiv))
    )
    return any(function.fact(n.right).is_tensor for n in divisions)


def ends_graph(function: Function, way: ast.expr) -> bool:
    """Whether a way is there to keep a gradient from what is computed before it, `z.detach()`: behind `where` that gets a
    gradient of zeros, by which an optimizer with momentum or weight decay goes on moving it."""
    made = function.value(way)
    return any(isinstance(n, ast.Attribute) and n.attr in ("detach", "data") for n in ast.walk(made))


def waits(function: Function, way: ast.expr) -> bool:
    """Whether a way waits itself: it is not computed without need, and may raise where the condition keeps it from running."""
    inside = {id(n) for n in ast.walk(way)}
    return any(id(s.node) in inside for s in function.sites)


def _tensors(function: Function, way: ast.expr) -> list[ast.expr]:
    return [n for n in ast.walk(way) if isinstance(n, (ast.Name, ast.Attribute)) and function.fact(n).is_tensor]
