"""`nonzero`, `argwhere` or one-argument `where` of a tensor on the device.

Why it waits
------------
The result has a row for each nonzero element. The host must know how many there are to make it, so it waits until the
device has computed everything that was asked for before.

What to do
----------
- Positions that only say where to write one number, or what to sum up: the mask itself says it, in a fixed shape.
- The first position: `mask.int().argmax()`. How many there are: `mask.sum()`, a tensor that stays on the device.
- At most k of them: `nonzero_static(mask, size=k)`, or `topk` of the mask.
- Positions of which the rows are used for more: look once, and use the positions wherever the mask was used.

Fix safety
----------
Indices that only serve to write one number are not needed: `x[mask] = number` is filled in place without a wait, and so is
`x.masked_fill_(mask, number)`: the same values and gradients. Safe where the shapes are known to fit and the number of
dimensions is known, else unsafe, because a tensor without dimensions is then filled instead of raising. Where only the count
is used, `count_nonzero` gives it as a tensor that stays on the device: unsafe, because code that needs a Python int will then
read it. The first k rows, `nonzero(m)[:k]`, can be had in a fixed shape from `nonzero_static`; so can all of them where the
mask was made with a known number of true elements. Both are suggested, not applied: rows that are missing hold -1. One class
column of each row, `loss[rows, label[rows]] = f(...)`, can be computed for all columns and chosen: unsafe, and more work where
few rows are kept.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import (
    Example,
    Family,
    Function,
    Severity,
    View,
    _class_columns,
    _cross_entropy,
    _first_true,
    _fixed_rows,
    _hardest,
    _index_write,
    _rows,
)
from syncscope.rules._class_columns import all_columns
from syncscope.rules._cross_entropy import of_rows
from syncscope.rules._first_true import first_true
from syncscope.rules._fixed_rows import first, known_number, padded
from syncscope.rules._function import Op
from syncscope.rules._hardest import hardest
from syncscope.rules._index_write import filled
from syncscope.rules._lengths import COUNTED, length, number_of_elements
from syncscope.rules._rows import unrowed

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("nonzero", "argwhere", "where")
SEEN_AS = ("aten::nonzero", "aten::argwhere", "aten::nonzero_numpy")
EXAMPLES = (
    Example(
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            rows, columns = torch.nonzero(target == 9, as_tuple=True)  # !
            target[rows, columns] = -1
            return target
        """,
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            target.masked_fill_(target == 9, -1)
            return target
        """,
        Safety.UNSAFE,
        "target: label[n, h, w]",
    ),
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            found = len(torch.nonzero(scores > 0))  # !
            return scores.sum() / found
        """,
        """
        import torch

        def forward(scores: torch.Tensor):
            found = (scores > 0).count_nonzero()
            return scores.sum() / found
        """,
        Safety.UNSAFE,
        "scores: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.where(scores > 0, scores, 0.0)
        """
    ),
    *_hardest.OF_ROWS,
    *_cross_entropy.OF_ROWS,
    *_rows.EXAMPLES,
    Example(
        """
        import torch

        def right(best: torch.Tensor, label: torch.Tensor):
            return (best == label).nonzero().numel() / len(label)  # !
        """,
        """
        import torch

        def right(best: torch.Tensor, label: torch.Tensor):
            return (best == label).count_nonzero() / len(label)
        """,
        Safety.SUGGEST,
        "best: label[n + 1] < 3; label: label[n + 1] < 3",
    ),
    *_index_write.EXAMPLES,
    *_first_true.EXAMPLES,
    *_fixed_rows.OF_NONZERO,
    *_class_columns.OF_ROWS,
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many elements are nonzero"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on, but what is done with it may be
        return hardest(site, function) or of_rows(site, function) or all_columns(site, function)
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.Call):
        return None
    return (
        hardest(site, function)
        or filled(site, function, site.node, op, as_tuple(site, op))
        or counted(site, function, site.node, op)
        or first_true(site, function, site.node, op, as_tuple(site, op))
        or first(site, function, site.node, op, as_tuple(site, op))
        or padded(function, site.node, op, as_tuple(site, op))
        or all_columns(site, function)
        or of_rows(site, function)
        or known_number(site, function, site.node, op, as_tuple(site, op))
        or unrowed(site, function)
    )


def as_tuple(site: Site, op: Op) -> bool:
    """Whether the result is a tuple of index tensors, one for each dimension."""
    flag = op.keywords.get("as_tuple")
    return site.op == "where" or (isinstance(flag, ast.Constant) and flag.value is True)


def counted(site: Site, function: Function, call: ast.Call, op: Op) -> Fix | None:
    """Only the number of rows is used: `len(nonzero(m))`, `nonzero(m).shape[0]`, `nonzero(m).numel()`."""
    rows: ast.expr = call
    if as_tuple(site, op):
        parent = function.parent(call)
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
            return None
        rows = parent
    rows, definition = function.carried(rows)
    ndim = site.fact_of(op.base).ndim
    factor = 1 if as_tuple(site, op) else ndim
    count = length(function, rows) or number_of_elements(function, rows)
    if count is None or ndim == 0 or (as_tuple(site, op) and ndim is None):
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    elements = number_of_elements(function, rows) is count
    if elements and factor not in (1, None):
        draft.replace(count, f"{{m}}.count_nonzero() * {factor}", m=op.base)
    else:
        draft.replace(count, "{m}.count_nonzero()", m=op.base)
    if elements and factor is None:
        one = f"{function.view.text(op.base)} must have one dimension"
        return draft.fix("count on the device", Safety.SUGGEST, f"{one}; {COUNTED}")
    return draft.fix("count on the device", Safety.UNSAFE, COUNTED)
