"""`len(nonzero(m))`, `nonzero(m).shape[0]` as `m.count_nonzero()`, a tensor that stays on the device."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.lengths import COUNTED, length, number_of_elements
from syncscope.codemod.patterns.positions import lookup
from syncscope.codemod.patterns.reads import handed_on, needs_number
from syncscope.codemod.writes import sole_use
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
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
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    rows: ast.expr = call
    if tupled:
        parent = function.parent(call)
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
            return None
        rows = parent
    rows, definition = sole_use(function, rows)
    ndim = site.fact_of(op.base).ndim
    factor = 1 if tupled else ndim
    count = length(function, rows) or number_of_elements(function, rows)
    if count is None or ndim == 0 or (tupled and ndim is None):
        return None
    if needs_number(function, count) or handed_on(function, count):
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    elements = number_of_elements(function, rows) is count
    if elements and factor not in (1, None):
        draft.replace(count, f"{{m}}.count_nonzero() * {factor}", m=op.base)
    else:
        draft.replace(count, "{m}.count_nonzero()", m=op.base)
    if elements and factor is None:
        one = f"{function.file.text(op.base)} must have one dimension"
        return draft.fix("count on the device", Safety.SUGGEST, f"{one}; {COUNTED}")
    return draft.fix("count on the device", Safety.UNSAFE, COUNTED)
