"""`torch.equal`, `torch.allclose`, `torch.is_nonzero`: a comparison whose answer is a Python bool.

Why it waits
------------
The answer is for Python, so the host waits until the device has computed both tensors and everything before them.

Fix safety
----------
An `assert` on such a comparison can become `torch._assert_async`: it is suggested, not applied, because the error comes later,
from the device, and is always a RuntimeError.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.EQUAL, Op.ALLCLOSE, Op.IS_NONZERO, Op.TENSOR_CHECK)
SEEN_AS = ("aten::equal", "aten::allclose", "aten::is_nonzero")
REWRITES = ("check_comparison_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            return x if torch.equal(x, y) else y  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} answers with a Python bool: the host waits for both tensors"


def certain(site: Site, function: Function) -> bool:
    return site.confidence >= 2  # a guess is no ground to change code on
