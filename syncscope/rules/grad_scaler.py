"""`GradScaler.step`, `get_scale` or `state_dict`: mixed precision with a loss scale.

Why it waits
------------
The scaler reads whether any gradient overflowed, once a step, to know whether it may call the optimizer. That is by design.
bfloat16 needs no loss scale; fused optimizers (`fused=True`) take the scaler's verdict on the device and do not wait.

The scale itself lives on the device, so `scaler.get_scale()` waits for it, and so does `scaler.state_dict()`, which holds it.
Before the backward pass has run it waits for all of that. Asked on both sides of `update()`, to learn whether the step was
skipped, it waits twice: the scale after one step is the scale before the next, and can be kept.

When a fix pays
---------------
Where the scale is not needed: bfloat16 does without. With float16 one wait a step is the price, and moving it behind other
host work, as logging, is all there is to gain.

Fix safety
----------
`fused=True` is suggested, not applied: all parameters must be floats on the device when the optimizer is made, and steps differ
in their last bits.
"""

from __future__ import annotations

import ast

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.GRAD_SCALER, Op.LOSS_SCALE)
SEEN_AS = (
    "aten::_amp_foreach_non_finite_check_and_unscale_",
    "aten::item",
)
REWRITES = ("fuse_optimizer",)
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)  # !
                scaler.update()
        """
    ),
    Example(
        """
        import torch

        def train(model, loader, optimizer, scheduler, scaler: torch.amp.GradScaler):
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                scaler.scale(loss).backward()
                before = scaler.get_scale()  # !
                scaler.step(optimizer)  # !
                scaler.update()
                if scaler.get_scale() >= before:  # !
                    scheduler.step()
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    call = site.node
    if site.op is Op.LOSS_SCALE:
        return f"{view.quote(site.node)} reads the loss scale, which lives on the device"
    made = view.function(site).maker(call.args[0]) if isinstance(call, ast.Call) and call.args else None
    flag = next((k.value for k in made.keywords if k.arg == "fused"), None) if made is not None else None
    if isinstance(flag, ast.Constant) and flag.value is True:
        return None
    return f"{view.quote(site.node)} reads whether a gradient overflowed: by design; bfloat16 or a fused optimizer avoids it"
