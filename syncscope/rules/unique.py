"""`unique` or `unique_consecutive` of a tensor on the device.

Why it waits
------------
The result has one element for each different value. The host must know how many there are to make it, so it waits until
the device has computed everything that was asked for before.

What to do
----------
- Only the number is used: count in a fixed shape, as below.
- Only whether there are any two: `(x.sort().values.diff() == 0).any()` stays on the device.
- The values are known before (labels, classes): `torch.bincount(x, minlength=n)` waits too, but
  `torch.zeros(n).scatter_add_(0, x, ones)` counts all n classes in a fixed shape.
- The values are the same from step to step: look for them once, before the loop.

When a fix pays
---------------
Where only the number of distinct values, or whether there are any others, is asked for. Where the values themselves are
needed the count must be read, and the wait stays; then look for it once.

Fix safety
----------
How many different values there are can be counted in a fixed shape: sort, and count the places where neighbours differ.
Unsafe, because the count is then a tensor on the device and no Python int, and because an empty tensor is counted as one
value. Where the values themselves are used there is no fix: that is a true dependency.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.UNIQUE, Op.UNIQUE_CONSECUTIVE)
SEEN_AS = (
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
)
REWRITES = ("count_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            values, counts = torch.unique(x, return_counts=True)  # !
            return values[counts.argmax()]
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many different values there are"
