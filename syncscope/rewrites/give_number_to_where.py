"""`torch.where(m, x, torch.tensor(0.0))` as `torch.where(m, x, 0.0)`.

It waits for code like AllenNLP's `bias_metrics.py`: `torch.where(~gap.isinf(), gap, torch.tensor(float("nan")))`.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import written_out
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            x = x.cuda()
            return torch.where(mask, x, torch.tensor(0.5)) + torch.tensor(0.5)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            x = x.cuda()
            return torch.where(mask, x, 0.5) + torch.tensor(0.5)
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    made = site.operand
    if not isinstance(made, ast.Call) or len(made.args) != 1:
        return None
    if function.dotted(made.func) not in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor"):
        return None
    if any(k.arg != "dtype" for k in made.keywords) or not written_out(function, made.args[0]):
        return None
    draft = Draft(function)
    draft.replace(made, "{value}", value=made.args[0])
    return draft.fix(
        "give the number",
        Safety.UNSAFE,
        "where the other choice has no dimensions, the result has its dtype and not that of the number's tensor",
    )
