"""One mask that serves several times: its true elements are looked for once."""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._proofs import is_mask, same_shape

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            return x[good] + y[good]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] + y[good_index]
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            return x[good] - y[good] * x[good].sigmoid()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] - y[good_index] * x[good_index].sigmoid()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]",
    ),
)


def indexed_once(site: Site, function: Function, better: frozenset[int]) -> Fix | None:
    """One `nonzero` instead of one wait for each use of the same mask. `better`: ids of nodes that have another fix."""
    mask = site.node.slice if isinstance(site.node, ast.Subscript) else None
    if not isinstance(mask, ast.Name) or (definition := function.definition(mask)) is None:
        return None
    uses = [
        s.node
        for s in function.sites
        if s.op in ("mask_read", "mask_write")
        and isinstance(s.node, ast.Subscript)
        and id(s.node) not in better
        and function.same(s.node.slice, mask)
        and is_mask(s.fact_of(s.node.slice))
        and function.definition(s.node.slice) is definition
    ]
    if len(uses) < 2 or site.node not in uses:
        return None
    first = function.statement(uses[0])
    block = function.block(definition)
    while first is not None and first not in block:
        first = next((n for n in function.around(first) if isinstance(n, ast.stmt)), None)
    if first is None or function.disturbed(mask.id, definition, uses[-1]):
        return None
    fact = site.fact_of(mask)
    if fact.ndim == 0:
        return None
    fresh = isinstance(definition.value, (ast.Compare, ast.BinOp, ast.UnaryOp))  # shares its memory with nothing
    fits = fresh and all(same_shape(function, use.slice, use.value) for use in uses)
    draft = function.draft()
    index = function.fresh(f"{mask.id}_index")
    draft.insert_before(first, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    title = f"look for the true elements of {mask.id} once, not {len(uses)} times"
    if fits and fact.ndim is not None:
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, "a mask whose shape does not fit is not always reported")
