"""The optimizer that a scaler steps, made with `fused=True`.

It waits for code like torchvision's `references/classification/train.py`, where scaler and optimizer are made in one function.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

FUSED = {"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD", "torch.optim.Adagrad"}
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader):
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)  # !
                scaler.update()
        """,
        """
        import torch

        def train(model, loader):
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    made = function.maker(call.args[0]) if isinstance(call, ast.Call) and call.args else None
    if made is None or function.dotted(made.func) not in FUSED:
        return None
    if any(k.arg in ("fused", "foreach", "differentiable", None) for k in made.keywords):
        return None
    draft = Draft(function)
    draft.replace(made, "{call}", call=draft.call(made, {}, fused="True"))
    return draft.fix(
        "let a fused optimizer take the verdict on the device",
        Safety.SUGGEST,
        "all parameters must be floats on the device when it is made, and steps differ in their last bits",
    )
