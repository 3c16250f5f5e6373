"""`if norm > limit: g.mul_(limit / norm)` as `g.mul_(torch.where(norm > limit, limit / norm, 1.0))`: 1 changes nothing."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import decided_by, holes, predicate, waits
from syncscope.codemod.proofs import no_dimensions
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.BRANCHES
# On an H200, 8 to 2,048 rows: 1.06 to 1.09 times as long where the host held steps up, 0.94 where the device did.
CHANGES = (
    "what is scaled is written on every pass, by 1 where it was left alone: steps that the host holds up get longer"
)
METHODS = ("mul_", "div_")
ENDS = {"grad", "data"}  # what of a tensor needs no gradient: in place of a leaf that needs one, nothing may be written
EXAMPLES = (
    Example(
        """
        import torch

        def clip(a: torch.Tensor, b: torch.Tensor):
            norm = torch.sqrt(a.square().sum() + b.square().sum())
            if norm > 1.0:  # !
                for each in (a, b):
                    each.data.mul_(1.0 / norm)  # as one vector
            return a, b
        """,
        """
        import torch

        def clip(a: torch.Tensor, b: torch.Tensor):
            norm = torch.sqrt(a.square().sum() + b.square().sum())
            scale = torch.where(norm > 1.0, 1.0 / norm, 1.0)
            for each in (a, b):
                each.data.mul_(scale)  # as one vector
            return a, b
        """,
        Safety.SUGGEST,
        "a: finite[n]; b: finite[m, k]",
    ),
    Example(
        """
        import torch

        def clip(model, limit: float):
            norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))
            if norm > limit:  # !
                factor = limit / (norm + 1e-6)
                for p in model.parameters():
                    if p.grad is not None:
                        p.grad.data.mul_(factor)
            return norm
        """,
        """
        import torch

        def clip(model, limit: float):
            norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))
            factor = torch.where(norm > limit, limit / (norm + 1e-6), 1.0)
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.data.mul_(factor)
            return norm
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def clip(grads, limit: float):
            total = torch.stack([grad.norm() for grad in grads]).norm()
            coefficient = limit / total
            if coefficient < 1:  # !
                for grad in grads:
                    grad *= coefficient
        """,
        """
        import torch

        def clip(grads, limit: float):
            total = torch.stack([grad.norm() for grad in grads]).norm()
            coefficient = limit / total
            scale = torch.where(coefficient < 1, coefficient, 1.0)
            for grad in grads:
                grad *= scale
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def clip(a: torch.Tensor, scores: torch.Tensor):
            norm = a.norm()
            if norm > 1.0:  # !
                a.mul_(1.0 / norm)
                print("clipped")
            return a
        """,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = decided_by(site, function)
    if statement is None or statement.orelse:
        return None
    factors: list[ast.expr] = []
    scaled: list[ast.expr] = []
    assigned = [s for s in statement.body if isinstance(s, ast.Assign)]
    named = {s.targets[0].id for s in assigned if isinstance(s.targets[0], ast.Name)}
    if not all(_only_scales(function, s, factors, scaled) for s in statement.body):
        return None
    condition = predicate(function, statement.test)
    own = [f for f in factors if not (isinstance(f, ast.Name) and f.id in named)]
    bound = {
        n.id for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    if not all(_is_tensor(function, of, bound) for of in scaled):
        return None
    if condition is None or not factors or not _serves(function, named, statement):
        return None
    if any(not _is_factor(function, each, statement.test) for each in (*own, *(s.value for s in assigned))):
        return None
    draft, chosen = Draft(function), f"torch.where({condition}, {{factor}}, 1.0)"
    if len(own) == 1 and not assigned and not _bound_in(own[0], statement):
        name = function.fresh("scale")
        draft.insert_before(statement, f"{name} = {chosen}", factor=own[0], **holes(statement.test))
        inside = [(own[0], name)]
    else:
        made = (*own, *(s.value for s in assigned))
        inside = [(each, draft.code(chosen, factor=each, **holes(statement.test))) for each in made]
    draft.unwrap(statement, inside)
    detached = all(ENDS & {n.attr for n in ast.walk(of) if isinstance(n, ast.Attribute)} for of in scaled)
    needs = "what is scaled must need no gradient" * (not detached)
    return draft.fix("scale by 1 where nothing is to be scaled", Safety.SUGGEST, needs, CHANGES)


def _only_scales(function: Function, statement: ast.stmt, factors: list[ast.expr], scaled: list[ast.expr]) -> bool:
    """Whether a statement does nothing but multiply or divide in place, in loops and where Python asks for it; by which
    `factors`, and what is `scaled`."""
    match statement:
        case ast.For(orelse=[], body=body, iter=over) if function.pure(over) or _goes_through_parameters(over):
            return all(_only_scales(function, each, factors, scaled) for each in body)
        case ast.If(orelse=[], body=body, test=test) if function.pure(test) and not waits(function, test):
            return all(_only_scales(function, each, factors, scaled) for each in body)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=of, attr=name), args=[factor], keywords=[])) if (
            name in METHODS
        ):
            factors.append(factor)
            scaled.append(of)
            return True
        case ast.AugAssign(target=ast.Attribute() | ast.Name() as of, op=ast.Mult() | ast.Div(), value=factor):
            factors.append(factor)
            scaled.append(of)
            return True
        case ast.Assign(targets=[ast.Name()], value=value):
            return function.pure(value)
    return False


def _is_tensor(function: Function, scaled: ast.expr, bound: set[str]) -> bool:
    """Whether what is scaled is a tensor, and no number that would become one: a gradient, what a loop gives, or known."""
    names = {n.attr for n in ast.walk(scaled) if isinstance(n, ast.Attribute)}
    looped = isinstance(scaled, ast.Name) and scaled.id in bound
    return bool(names & ENDS) or looped or function.fact(scaled).is_tensor


def _goes_through_parameters(over: ast.expr) -> bool:
    match over:
        case ast.Call(func=ast.Attribute(attr="parameters" | "named_parameters"), args=[], keywords=[]):
            return True
    return False


def _is_factor(function: Function, factor: ast.expr, test: ast.expr) -> bool:
    """Whether it is one floating-point number on the device, for which 1 may stand. What is asked for its truth has one
    element, and so has what is computed of the same names."""
    fact = function.fact(factor)
    known = {ast.unparse(n) for n in ast.walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    one = no_dimensions(function, factor) or fact.ndim == 0 or _of(factor, known)
    floats = fact.dtype is Dtype.FLOAT or (isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Div))
    return fact.is_tensor and one and floats and function.pure(factor) and not waits(function, factor)


def _of(factor: ast.expr, known: set[str]) -> bool:
    """Whether it is arithmetic over these names and numbers alone."""
    match factor:
        case ast.BinOp(left=left, right=right):
            return _of(left, known) and _of(right, known)
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
    return ast.unparse(factor) in known


def _bound_in(factor: ast.expr, statement: ast.If) -> bool:
    """Whether a factor is made of what the body itself binds, as the tensor that is scaled."""
    used = {n.id for n in ast.walk(factor) if isinstance(n, ast.Name)}
    return any(
        isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and n.id in used
        for s in statement.body
        for n in ast.walk(s)
    )


def _serves(function: Function, named: set[str], statement: ast.If) -> bool:
    """Whether what is named in the body is read in it alone: where it was left out it would be another value."""
    inside = {id(n) for s in statement.body for n in ast.walk(s)}
    return all(id(n) in inside for name in named for n in function.names(name))
