"""`nonzero(m)[:k]`, perhaps by a name, as `torch.nonzero_static(m, size=k)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around
from syncscope.codemod.patterns.positions import lookup, positions
from syncscope.codemod.writes import sole_use
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

COMPLETED = "there are always that many rows: those that are missing hold -1, which as an index is the last row"
SELECTS_APART = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.nonzero(scores > 0)[:8]  # !
        """,
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.nonzero_static(scores > 0, size=8)
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor, k: int):
            found = (scores > 0).nonzero(as_tuple=True)[0]  # !
            found = found[:k]
            return x[found]
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor, k: int):
            found = torch.nonzero_static(scores > 0, size=k)[:, 0]
            return x[found]
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    flag = op.keywords.get("as_tuple")
    if op.args or op.keywords.keys() - {"as_tuple"} or not (tupled or flag is None or isinstance(flag, ast.Constant)):
        return None
    row = positions(function, call, tupled)
    if tupled and row is None:
        return None
    used, definition = sole_use(function, row or call)
    cut = around(function, used, "{it}[:{k}]")
    if cut is None or not a_size(function, cut.parts["k"]):
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    static = draft.part("torch.nonzero_static({m}, size={k})", m=op.base, k=cut.parts["k"])
    if tupled:
        draft.replace(cut.node, "{s}[:, 0]", s=static)
    else:
        draft.replace(cut.node, "{s}", s=static if row is None else draft.swapped(row, {call: static}))
    return draft.fix("take a fixed number of rows", Safety.SUGGEST, COMPLETED)


def a_size(function: Function, node: ast.expr) -> bool:
    """Whether an expression can be a number of rows: none that is negative, or on the device."""
    value = function.constant(node)
    if value is not None:
        return isinstance(value, int) and value > 0
    return isinstance(node, (ast.Name, ast.Attribute)) and not function.fact(node).is_tensor
