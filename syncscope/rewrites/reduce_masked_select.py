"""`x.masked_select(m).sum()` as a sum over all of x: its mask is spread over it as `where` does, whatever the shapes."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.over_all import OTHER_WORDS, reduced
from syncscope.codemod.patterns.reductions import reduction
from syncscope.codemod.proofs import may_be_mask
from syncscope.codemod.writes import sole_use
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Adds, Fix, Safety

COMPILES = True
ADDS = Adds.ROWS
TOGETHER = True
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            good = x > 0
            return x.masked_select(good).sum()  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            good = x > 0
            return torch.where(good, x, 0).sum()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor):
            errors, known = (x - y).abs(), (weights > 0).unsqueeze(-1)
            total = errors.mul(weights.unsqueeze(-1)).masked_select(known).sum()  # !
            middle = torch.mean(errors.masked_select(known))  # !
            return total, middle
        """,
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor):
            errors, known = (x - y).abs(), (weights > 0).unsqueeze(-1)
            total = torch.where(known, errors.mul(weights.unsqueeze(-1)), 0).sum()
            middle = torch.where(known, errors, 0.0).sum() / known.expand_as(errors).sum()
            return total, middle
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]; weights: float[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    mask = op.argument(0, "mask") if op is not None and op.name == "masked_select" else None
    if op is None or mask is None:
        return None
    return reduced(site, function, op.base, mask) or spread(site, function, op.base, mask)


def spread(site: Site, function: Function, base: ast.expr, mask: ast.expr) -> Fix | None:
    """A sum or mean of what `masked_select` gives: it spreads its mask over the tensor as `where` does, whatever the shapes."""
    taken = site.node
    if (
        not isinstance(taken, ast.expr)
        or not may_be_mask(site.fact_of(mask))
        or site.fact_of(base).kind is not Value.TENSOR
    ):
        return None
    used, definition = sole_use(function, taken)
    r = reduction(site, function, used, mask, definition, taken) if definition is None else None
    if r is None or r.whole is not taken or r.guard is not None or r.name not in ("sum", "mean"):
        return None
    if not function.pure(mask) or not function.pure(base):
        return None
    told, template = [*(r.changes or [OTHER_WORDS])], r.template
    if r.name == "mean":
        if not isinstance(base, (ast.Name, ast.Attribute)):
            return None  # it is asked for its shape
        template = template.replace("{m}.sum()", "{m}.expand_as({x}).sum()")
        told.append(f"the mask must not have more elements than {function.file.text(base)}")
    draft = Draft(function)
    draft.replace(r.node, template, m=mask, x=base)
    return draft.fix("reduce all, with the mask inside", Safety.UNSAFE, *told)
