"""A Python list or a numpy array as an index into a tensor of the device: `x[[0, 2]]`.

Why it waits
------------
The index is made into a tensor on the host and copied to the device, and the host waits for the copy, which comes after
everything that was asked for before. An index that stays the same can be made once, before the loop.

When a fix pays
---------------
Where one index serves several tensors, or stays the same over many steps. For one small list in a step, one wait is all there
is to gain.

Fix safety
----------
Positions that rise by equal steps are a slice, which shares memory. A few rows that are written out can be taken one by one
and stacked, without any index: unsafe only in what is said of an index that is out of range. A number that is written in each
row at a position of its own, `x[range(n), i] = 1`, is scattered: unsafe, because of what `scatter_` asks of `i`. One that
serves several tensors can be copied once: unsafe, because all must live on one device.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.INDEX_LIST,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::index", "aten::to")
REWRITES = ("slice_evenly", "stack_rows", "make_number_on_device", "send_index_once")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x.cuda()[[0, 2]]  # !
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} copies its index to the device, and waits for the copy"


def certain(site: Site, function: Function) -> bool:
    return True  # copied once it holds the same, wherever it goes
