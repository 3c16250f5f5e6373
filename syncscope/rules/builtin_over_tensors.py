"""Python's own `max`, `min`, `any`, `all`, `sorted` over tensors of the device.

Why it waits
------------
They compare two values at a time and ask each comparison for its truth: the host waits for every one of them.

When a fix pays
---------------
From a handful of tensors on: each comparison is a wait of its own, and `torch.stack(...).max()` is one kernel and one wait.
Not for two numbers that are read anyway.

Fix safety
----------
`max(t, 1.0)` is `t.clamp(min=1.0)`, `max(t, u)` is `torch.maximum(t, u)`, and `max(t)` is `t.max()`. Unsafe, because the
result is always a tensor (Python gives back the number where it wins), and because NaN comes through whichever way round it
stands. Over a list of tensors of one shape, stacking them asks once.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.BUILTIN,)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = ("compare_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return max(x.shape[0], 1)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} compares tensors one by one in Python, and waits for each comparison"
