"""`torch.equal`, `torch.allclose`, `torch.is_nonzero`: a comparison whose answer is a Python bool.

Why it waits
------------
The answer is for Python, so the host waits until the device has computed both tensors and everything before them.

When a fix pays
---------------
In every step, as on the way into a kernel or a cache. Not in tests, nor in checks that are switched off for real runs; where
both are mostly one object, `is` answers without the device (where they are two the host still waits: such a comparison is
shown with `--min-confidence low`).

Fix safety
----------
An `assert` on such a comparison can become `torch._assert_async`: it is suggested, not applied, because the error comes later,
from the device, and is always a RuntimeError. Where both are mostly one object, `a is b or torch.equal(a, b)` asks Python
first: suggested too, because a tensor that holds NaN then equals itself, and two objects are compared as before.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.EQUAL, Op.ALLCLOSE, Op.IS_NONZERO, Op.TENSOR_CHECK)
SEEN_AS = ("aten::equal", "aten::allclose", "aten::is_nonzero")
REWRITES = ("check_comparison_on_device", "ask_identity_first")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            return x if torch.allclose(x, y) else y  # !
        """
    ),
)


def message(site: Site, view: View) -> str:
    waited = "the tensor" if site.op in (Op.IS_NONZERO, Op.TENSOR_CHECK) else "both tensors"
    return f"{view.quote(site.node)} answers with a Python bool: the host waits for {waited}"
