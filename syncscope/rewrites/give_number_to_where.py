"""`torch.where(m, x, torch.tensor(0.0))` as `torch.where(m, x, 0.0)`.

It waits for code like AllenNLP's `bias_metrics.py`: `torch.where(~gap.isinf(), gap, torch.tensor(float("nan")))`,
and NeMo's `sortformer_modules.py`, where the device of the mask is only guessed.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import written_out
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
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
    Example(
        """
        import torch

        def sign(x: torch.Tensor):
            x = x.cuda()
            return torch.where(x > 0, torch.tensor(1.0), torch.tensor(-1.0))  # !
        """,
        """
        import torch

        def sign(x: torch.Tensor):
            x = x.cuda()
            return torch.where(x > 0, 1.0, -1.0)
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.node, ast.Call) or number_of(function, site.operand) is None:
        return None
    draft, said = Draft(function), False
    for made in [*site.node.args, *(k.value for k in site.node.keywords)]:  # one that is left would still be copied
        if isinstance(made, ast.Call) and (number := number_of(function, made)) is not None:
            draft.replace(made, "{value}", value=number)
            said = said or bool(made.keywords)
    changes = "where the other choice has no dimensions, the result has its dtype and not that of the number's tensor"
    if said:
        changes = f"{changes}; nor where the other choice is of whole numbers"
    return draft.fix("give the number", Safety.UNSAFE, changes)


def number_of(function: Function, made: ast.expr | None) -> ast.expr | None:
    """The number of `torch.tensor(0.5)`, which may say its dtype."""
    if not isinstance(made, ast.Call) or len(made.args) != 1:
        return None
    if function.dotted(made.func) not in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor"):
        return None
    plain = all(k.arg == "dtype" for k in made.keywords) and written_out(function, made.args[0])
    return made.args[0] if plain else None
