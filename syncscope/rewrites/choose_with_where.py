"""`x[m] = f(a[m])` and `x[m] += f(a[m])` as `x = torch.where(m, f(a), x)`. The site is x[m] or any a[m].

What the same mask leaves out is often written in the next line, `x[~m] = g(a[~m])`: both are `x = torch.where(m, f(a), g(a))`.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.bounds import bounded, one_elsewhere
from syncscope.codemod.proofs import is_mask, of_rows, pointwise, same_rank
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import seen_otherwise
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.model.ops import Op

SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}  # of `x[m] += a`
WHERE = "{x} = torch.where({m}, {value}, {x})"
COMPILES = True
ADDS = Adds.ROWS
TOGETHER = True
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import math
        import torch

        def wrapped(x: torch.Tensor):
            angle = x.double() * 4
            angle[angle < -1] += 2 * 3.5  # !
            angle[angle >= 6] /= 3  # !
            return angle
        """,
        """
        import math
        import torch

        def wrapped(x: torch.Tensor):
            angle = x.double() * 4
            angle = torch.where(angle < -1, angle + 2 * 3.5, angle)
            angle = torch.where(angle >= 6, angle / 3, angle)
            return angle
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
        rule="boolean-mask-write",
    ),
    Example(
        """
        import torch

        def margin(scores: torch.Tensor, target: torch.BoolTensor):
            found = torch.zeros_like(scores)
            found[~target] = -scores[~target]  # !
            return found
        """,
        """
        import torch

        def margin(scores: torch.Tensor, target: torch.BoolTensor):
            found = torch.zeros_like(scores)
            found = torch.where(~target.view(target.shape + (1,) * (found.ndim - target.ndim)), -scores, found)
            return found
        """,
        Safety.SUGGEST,
        "scores: finite[n, m]; target: bool[n]",
        rule="boolean-mask-write",
    ),
    Example(
        """
        import torch

        def barrier(x: torch.Tensor):
            out = torch.empty_like(x)
            low = x < -0.5
            out[~low] = x[~low] + 0.5 * x[~low] ** 2  # !
            out[low] = -0.25 * torch.log(-2 * x[low])  # !
            return out
        """,
        """
        import torch

        def barrier(x: torch.Tensor):
            out = torch.empty_like(x)
            low = x < -0.5
            out = torch.where(low, -0.25 * torch.log(-2 * torch.where(low, x, 1)), x + 0.5 * x ** 2)
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
        rule="boolean-mask-write",
    ),
    Example(
        """
        import torch

        def clipped(x: torch.Tensor, low: float, scale: float):
            out = x.clone()
            out[out < low] = scale * (torch.exp(out[out < low] - low) - 1.0) + low  # !
            return out
        """,
        """
        import torch

        def clipped(x: torch.Tensor, low: float, scale: float):
            out = x.clone()
            out = torch.where(out < low, scale * (torch.exp(torch.where(out < low, out, 1) - low) - 1.0) + low, out)
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; low: number; scale: number",
        rule="boolean-mask-write",
    ),
)


class Choice(NamedTuple):
    """What takes the place of an assignment through a mask: `{x} = torch.where({chosen}, {value}, {x})`."""

    x: ast.Name
    mask: ast.expr
    chosen: Part  # the mask, as `where` takes it
    value: Part
    safety: Safety
    changes: tuple[str, ...]


def rewrite(site: Site, function: Function) -> Fix | None:
    if (fix := both_ways(site, function)) is not None:
        return fix
    assign, draft = function.statement(site.node), Draft(function)
    found = choice(site, function, assign, draft)
    if found is None or assign is None:
        return None
    draft.replace(assign, WHERE, x=found.x, m=found.chosen, value=found.value)
    return draft.fix("compute all, and choose", found.safety, *found.changes)


def both_ways(site: Site, function: Function) -> Fix | None:
    """The fix for `x[m] = a` and `x[~m] = b`, where one stands right before the other."""
    assign = function.statement(site.node)
    block = function.block(assign) if assign is not None else []
    at = block.index(assign) if assign in block else 0
    first, second = next(
        (pair for pair in pairwise(block[max(at - 1, 0) : at + 2]) if of_two_ways(*pair)), (None, None)
    )
    if first is None or second is None:
        return None
    draft, found = Draft(function), list[Choice]()
    for each in (first, second):
        write = next((s for s in function.sites_in(each) if s.op is Op.MASK_WRITE), None)
        chosen = choice(write, function, each, draft) if write is not None else None
        if chosen is None or chosen.safety is Safety.SUGGEST:
            return None
        found.append(chosen)
    one, other = found if isinstance(found[0].mask, ast.Name) else found[::-1]
    draft.replace(first, "{x} = torch.where({m}, {a}, {b})", x=one.x, m=one.chosen, a=one.value, b=other.value)
    draft.remove(second)
    return draft.fix(
        "compute both, and choose", Safety.UNSAFE, *max(one.changes, other.changes, key=lambda each: len("".join(each)))
    )


def of_two_ways(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements write what a mask that has a name selects, and what it leaves out, to one tensor."""
    match written(first), written(second):
        case ast.Subscript(value=ast.Name(id=x), slice=one), ast.Subscript(value=ast.Name(id=y), slice=other):
            names = {ast.unparse(one), ast.unparse(other)}
            plain = [each.id for each in (one, other) if isinstance(each, ast.Name)]
            both = isinstance(first, ast.Assign) and isinstance(second, ast.Assign)
            return both and x == y and len(plain) == 1 and names == {plain[0], f"~{plain[0]}"}
    return False


def choice(site: Site, function: Function, assign: ast.stmt | None, draft: Draft) -> Choice | None:
    """What `x[m] = f(a[m])` says of all elements; None where it is no such statement."""
    target = written(assign)
    if target is None or not isinstance(assign, (ast.Assign, ast.AugAssign)) or not isinstance(target.value, ast.Name):
        return None
    mask, base, bases = target.slice, target.value, list[ast.expr]()
    if not is_mask(site.fact_of(mask)):
        return function.declines(
            site.node, f"that {function.file.quote(mask)} is a mask, and no positions, is not known"
        )
    if not pointwise(function, assign.value, mask, None, bases):
        return function.declines(site.node, "what is written is not made element by element of what the mask selects")
    if seen_otherwise(function, base, assign):
        return function.declines(site.node, f"`{base.id}` is known by another name, too, or given from outside")
    sign = "" if isinstance(assign, ast.Assign) else SIGNS.get(type(assign.op))
    if sign is None or not all(function.pure(n) for n in (assign.value, mask)):
        return function.declines(site.node, "what is written cannot be computed of all elements")
    taken = [n for n in ast.walk(assign.value) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)]
    x, value = site.fact_of(base), site.fact_of(assign.value)
    if (not taken and not sign) or (
        taken and x.dtype is not value.dtype and Dtype.UNKNOWN not in (x.dtype, value.dtype)
    ):
        return None
    fits = same_rank(site, function, mask, base)
    if not fits and (site.fact_of(mask).ndim is not None or of_rows(function, mask)):
        return function.declines(site.node, f"{function.file.quote(mask)} selects rows of `{base.id}`, no elements")
    chosen: Part | None = mask if fits else over_rows(draft, base, mask)
    if chosen is None:
        return None
    guarded = set(taken) if sign == "/" else bounded(function, assign.value, taken)
    whole: Part = assign.value
    if taken:
        of: dict[ast.expr, Part] = {
            n: one_elsewhere(draft, chosen, n.value) if n in guarded else n.value for n in taken
        }
        whole = of[taken[0]] if taken == [assign.value] else draft.swapped(assign.value, of)
    changed = draft.part(f"{{x}} {sign} {{whole}}", x=base, whole=whole) if sign else whole
    finite = ", and what the mask leaves out must be finite or its gradient is NaN" if len(guarded) < len(taken) else ""
    anew = f"{base.id} is a new tensor: other views of the old one keep their values"
    alike = f"all must have its dtype and the mask's {'shape' if fits else 'rows'}{finite}"
    if fits:
        return Choice(base, mask, chosen, changed, Safety.UNSAFE, (anew, alike))
    shape = f"the mask keeps rows, or elements: where its shape is that of {base.id}, it needs no view"
    return Choice(base, mask, chosen, changed, Safety.SUGGEST, (shape, anew, alike))


def over_rows(draft: Draft, base: ast.Name, mask: ast.expr) -> Part | None:
    """A mask that has a name, with as many dimensions as what is chosen from: one of rows is spread over each of them."""
    inverted = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
    name = mask.operand if isinstance(mask, ast.UnaryOp) and inverted else mask
    if not isinstance(name, ast.Name):
        return None
    sign = "~" if inverted else ""
    return draft.part(f"{sign}{{m}}.view({{m}}.shape + (1,) * ({{x}}.ndim - {{m}}.ndim))", m=name, x=base)


def written(assign: ast.stmt | None) -> ast.Subscript | None:
    """The target of `x[m] = ...` or `x[m] += ...`."""
    match assign:
        case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
            return target
    return None
