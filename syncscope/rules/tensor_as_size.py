"""A tensor on the device where a size, a length or a bound is taken: `arange(n)`, `x.view(n, -1)`, `x[:n]`, `range(n)`.

Why it waits
------------
Shapes are the host's: to make a tensor of that size it reads the number, and waits until the device has computed it and
everything before it. Sizes that come from `x.shape` are known to the host; those that come from values are not.

What to do
----------
- Work on the padded size, `x.shape[1]`, with a mask: no size is asked for, and every step has the same shapes.
- Let the loader say it: `collate_fn` knows the longest sequence of a batch, and can cut the batch to it on the host.
- `for i in range(n)` over a tensor n: loop to a bound that the host knows, and let `torch.where(i < n, ...)` choose.

When a fix pays
---------------
Where a bound is known to the host, a padded size does as well, or one count can be read for several uses. Where sizes follow
the data and each row is dear, the wait is the price of not padding.

Fix safety
----------
The largest of lengths that were just made a tensor of is asked of the list: unsafe, because that must hold whole numbers of
Python's. Lengths that a loop takes one by one are read before it, all at once: safe where it has a pass for each of them. A
piece of known size, `x[i, a : a + n]`, is taken by positions that the device counts: unsafe, because a slice is cut short at
the end of x, and a position there is an error.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.SIZE,)
SEEN_AS = (
    "aten::item",
    "aten::_local_scalar_dense",
)
REWRITES = ("go_through_numbers", "read_before_loop")
EXAMPLES = (
    Example(
        """
        import torch

        def total(x: torch.Tensor, lengths: torch.LongTensor):
            longest = lengths.max()
            mask = torch.arange(longest, device=x.device) < lengths[:, None]  # !
            return (x[:, :longest] * mask).sum(dim=1)  # !
        """,
        inputs="x: finite[n + 1, m]; lengths: index[n + 1] < m",
        instead="""
        import torch

        def total(x: torch.Tensor, lengths: torch.LongTensor):
            mask = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
            return (x * mask).sum(dim=1)
        """,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, lengths: torch.Tensor):
            return torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.operand)} is a tensor on the device and taken as a size: the host waits to read it"
