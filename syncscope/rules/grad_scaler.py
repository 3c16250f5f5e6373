"""`GradScaler.step`, `update` or `unscale_`: mixed precision with a loss scale.

Why it waits
------------
The scaler reads whether any gradient overflowed, once a step, to know whether it may call the optimizer. That is by design.
bfloat16 needs no loss scale; fused optimizers (`fused=True`) take the scaler's verdict on the device and do not wait.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("grad_scaler",)
SEEN_AS = (
    "aten::_amp_foreach_non_finite_check_and_unscale_",
    "aten::item",
)
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
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} reads whether a gradient overflowed: by design; bfloat16 or a fused optimizer avoids it"
