"""`torch.where(m, x, torch.tensor(0.0))` as `torch.where(m, x, 0.0)`, wherever the tensor is made.

It waits for code like AllenNLP's `bias_metrics.py`: `torch.where(~gap.isinf(), gap, torch.tensor(float("nan")))`,
and NeMo's `sortformer_modules.py`, where the device of the mask is only guessed.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around
from syncscope.codemod.patterns.numbers import written_out
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety

TOGETHER = True
ROUNDS = True
MAKERS = frozenset(("torch.tensor", "torch.as_tensor", "torch.scalar_tensor"))
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
        rule="host-number-in-where",
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
        rule="host-number-in-where",
    ),
    Example(
        """
        import torch

        def bounded(x: torch.Tensor, most: int):
            x = x.flatten()
            x = torch.where(x >= 0, x, torch.tensor(0.0, device=x.device))  # !
            return torch.where(x <= most, x, torch.tensor(most, device=x.device))  # !
        """,
        """
        import torch

        def bounded(x: torch.Tensor, most: int):
            x = x.flatten()
            x = torch.where(x >= 0, x, 0.0)
            return torch.where(x <= most, x, most)
        """,
        Safety.UNSAFE,
        "x: finite[n]; most: count",
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def positive(x: torch.Tensor):
            return torch.where(x > 0, x, torch.tensor(0.5).to(x.device))  # !
        """,
        """
        import torch

        def positive(x: torch.Tensor):
            return torch.where(x > 0, x, 0.5)
        """,
        Safety.UNSAFE,
        "x: finite[n]",
        rule="created-on-host",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.node, ast.Call):
        return None
    if function.dotted(site.node.func) == "torch.where":
        call, asked = site.node, site.operand
    else:
        found = around(function, site.node, "torch.where({mask}, {it}, {other})", "torch.where({mask}, {other}, {it})")
        if found is None or not isinstance(found.node, ast.Call):
            return None
        call, asked = found.node, site.node
    if number_of(function, asked) is None:
        return None
    draft, said = Draft(function), False
    for made in [*call.args, *(k.value for k in call.keywords)]:  # one that is left would still be copied
        if (number := number_of(function, made)) is not None:
            draft.replace(made, "{value}", value=number.value)
            said = said or number.typed
    changes = "where the other choice has no dimensions, the result has its dtype and not that of the number's tensor"
    whole = ""
    if said:
        whole = "nor where the other choice is of whole numbers"
    return draft.fix("give the number", Safety.UNSAFE, changes, whole)


class NumberChosen(NamedTuple):
    """A number that a tensor is made of, and whether it is a float of which it is said in what dtype."""

    value: ast.expr
    typed: bool


def number_of(function: Function, made: ast.expr | None) -> NumberChosen | None:
    """The number of `torch.tensor(0.5)`, which may say its dtype and its device, or be sent there."""
    match made:
        case ast.Call(func=ast.Attribute(value=ast.Call() as sent, attr="to" | "cuda"), args=moved, keywords=more):
            if len(moved) + len(more) > 1 or any(k.arg != "device" for k in more):
                return None
            if moved and function.fact(moved[0]).kind is Value.TENSOR:  # and of its dtype
                return None
            made = sent
    if not isinstance(made, ast.Call) or len(made.args) != 1 or function.dotted(made.func) not in MAKERS:
        return None
    (value,), names = made.args, {k.arg for k in made.keywords}
    fact = function.fact(value)
    known = written_out(function, value) or (fact.kind is Value.SCALAR and fact.confidence == 3)
    typed = "dtype" in names and not isinstance(function.constant(value), int)
    return NumberChosen(value, typed) if known and names <= {"device", "dtype"} else None
