"""One mask that serves several times, `x[m] + y[m]`: its true elements are looked for once, `i = m.nonzero(as_tuple=True)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import CONDITIONAL
from syncscope.codemod.function import Function
from syncscope.codemod.proofs import is_mask, same_shape
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.model.ops import Op
from syncscope.rewrites import (
    choose_with_where,
    compute_all_columns,
    fill_own_column,
    ignore_in_cross_entropy,
    reduce_with_mask,
    sum_first_of_sorted,
    sum_losses_by_mask,
)

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
        rule="boolean-mask-read",
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
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(out: torch.Tensor, data):
            return F.l1_loss(out[data.train_mask], data.y[data.train_mask])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(out: torch.Tensor, data):
            train_mask_index = data.train_mask.nonzero(as_tuple=True)
            return F.l1_loss(out[train_mask_index], data.y[train_mask_index])
        """,
        Safety.UNSAFE,
        rule="boolean-mask-read",
    ),
)

REPEATED = (ast.For, ast.AsyncFor, ast.With)  # what runs their bodies, most often

BETTER = {  # what is tried of a selection first, by op: one that has such a fix needs no index
    Op.MASK_READ: (
        ignore_in_cross_entropy, sum_losses_by_mask, reduce_with_mask, choose_with_where, fill_own_column, compute_all_columns,
        sum_first_of_sorted,
    ),
    Op.MASK_WRITE: (choose_with_where, fill_own_column, compute_all_columns),
}  # fmt: skip


def rewrite(site: Site, function: Function) -> Fix | None:
    better = function.once("better", function.scope, lambda: mended_otherwise(function))
    mask = site.node.slice if isinstance(site.node, ast.Subscript) else None
    if isinstance(mask, ast.Attribute):
        return of_statement(site, function, mask, better)
    if not isinstance(mask, ast.Name) or (definition := function.reaching_definition(mask)) is None:
        return None
    uses = [
        s.node
        for s in function.sites
        if s.op in BETTER
        and isinstance(s.node, ast.Subscript)
        and id(s.node) not in better
        and function.same(s.node.slice, mask)
        and is_mask(s.fact_of(s.node.slice))
        and function.reaching_definition(s.node.slice) is definition
    ]
    if len(uses) < 2 or site.node not in uses:
        return None
    first = before_all(function, definition, uses)
    if (
        first is None
        or disturbed(function, mask.id, definition, uses[-1])
        or exposed(function, mask.id, first, uses[-1])
    ):
        return None
    fact = site.fact_of(mask)
    if fact.ndim == 0:
        return None
    fresh = isinstance(definition.value, (ast.Compare, ast.BinOp, ast.UnaryOp))  # shares its memory with nothing
    fits = fresh and all(same_shape(function, use.slice, use.value) for use in uses)
    draft = Draft(function)
    index = function.fresh(f"{mask.id}_index")
    draft.insert_before(first, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    title = f"look for the true elements of {mask.id} once, not {len(uses)} times"
    if fits and fact.ndim is not None:
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, "a mask whose shape does not fit is not always reported")


def of_statement(site: Site, function: Function, mask: ast.Attribute, better: frozenset[int]) -> Fix | None:
    """A mask that an object holds, where it serves several times in one statement: `F.mse_loss(x[d.mask], y[d.mask])`."""
    statement = function.statement(site.node)
    if statement is None or not function.pure(mask) or function.indent(statement).strip():
        return None
    subscripts = (n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load))
    uses = [n for n in subscripts if function.same(n.slice, mask)]
    at_once = site.op is Op.MASK_READ and all(
        id(use) not in better and function.runs_first(statement, use) for use in uses
    )
    if len(uses) < 2 or site.node not in uses or not at_once:
        return None
    draft = Draft(function)
    index = function.fresh(f"{mask.attr}_index")
    draft.insert_before(statement, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    name = function.file.text(mask)
    changes = f"{name} must be a mask, no positions; one whose shape does not fit is not always reported"
    return draft.fix(f"look for the true elements of {name} once, not {len(uses)} times", Safety.UNSAFE, changes)


def before_all(function: Function, definition: ast.Assign, uses: list[ast.Subscript]) -> ast.stmt | None:
    """The statement before which an index serves all uses, and after which one surely comes: nothing is looked for in vain."""
    for n in function.around(uses[0]):
        if isinstance(n, ast.stmt):
            break
        if isinstance(n, CONDITIONAL):
            return None
    statement = function.statement(uses[0])
    while statement is not None:
        block, parent = function.block(statement), function.parent(statement)
        if isinstance(statement, ast.If) and function.is_elif(statement):
            return None
        serves = all(any(n in block for n in function.around(use)) for use in uses)
        if serves and (definition in block or not isinstance(parent, REPEATED)):
            return statement
        if not isinstance(parent, REPEATED) or statement not in parent.body:
            return None
        statement = parent
    return None


def mended_otherwise(function: Function) -> frozenset[int]:
    """The ids of the selections of a function that have a better fix than an index."""
    tried = ((s.node, way.rewrite(s, function)) for s in function.sites for way in BETTER.get(s.op, ()))
    return frozenset(id(node) for node, fix in tried if fix is not None)
