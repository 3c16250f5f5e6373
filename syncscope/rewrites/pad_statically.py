"""`i = nonzero(m).squeeze(1)` that is padded to n as `torch.nonzero_static(m, size=n, fill_value=-1)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.known_counts import a_size
from syncscope.codemod.patterns.lengths import length, number_of_elements
from syncscope.codemod.patterns.positions import lookup, positions
from syncscope.codemod.writes import changed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor):
            x = x.flatten()
            found = torch.nonzero(x > 0).squeeze(1)  # !
            return F.pad(found, (0, 30 - found.numel()), value=-1)
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor):
            x = x.flatten()
            return torch.nonzero_static(x > 0, size=30, fill_value=-1)[:, 0]
        """,
        Safety.SUGGEST,
        "x: finite[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    row = positions(function, call, tupled)
    assign = function.parent(row) if row is not None else None
    uses = function.seen_by(assign) if isinstance(assign, ast.Assign) and assign.value is row else []
    if len(uses) != 2 or not isinstance(assign, ast.Assign) or row is None:
        return None
    pad = function.parent(uses[0])
    padded = seen(
        function, pad, "F.pad({i}, ({low}, {n} - {there}), value={f})", "F.pad({i}, [{low}, {n} - {there}], value={f})"
    )
    if padded is None or not isinstance(pad, ast.Call) or not isinstance(function.constant(padded["f"]), int):
        return None
    if (
        not a_size(function, padded["n"])
        or (length(function, uses[1]) or number_of_elements(function, uses[1])) is not padded["there"]
    ):
        return None
    if not function.pure(op.base) or not function.alone(assign) or changed(function, assign, pad, op.base):
        return None
    draft = Draft(function)
    draft.remove(assign)
    static = draft.part("torch.nonzero_static({m}, size={n}, fill_value={f})", m=op.base, n=padded["n"], f=padded["f"])
    draft.replace(pad, "{s}[:, 0]", s=static)
    return draft.fix(
        "say how many rows there are", Safety.SUGGEST, f"{function.file.text(op.base)} must have one dimension"
    )
