"""A tensor of the host as an index into a tensor of the device: `x[torch.arange(n)]`.

Why it waits
------------
The index is copied to the device where the other tensor lives, and the host waits for the copy, which comes after everything
that was asked for before. Nothing in the code says so, and it happens again at every use. On the CPU and on the OpenCL
backends nobody waits.

What to do
----------
- Make the index where it is used: `torch.arange(n, device=x.device)`, `torch.randperm(n, device=x.device)`.
- One that stays the same is a buffer of the module, and moves with it: `self.register_buffer("order", order)`.
- One that only the host knows is copied without waiting: `order.to(x.device, non_blocking=True)`, at best from pinned memory.
- One row: `x[3]` needs no tensor.

When a fix pays
---------------
In every step, whatever the size of the index. Not where the index changes each time and is made from the host's values: then
the copy stays, and only the wait can go.

Fix safety
----------
Safe where the index is made of whole numbers that count, for it alone. Unsafe where it is drawn: the device's generator
draws other numbers for the same seed. Any other index of whole numbers is sent without waiting: unsafe, because it is for the
backend to take it over before it returns, as CUDA does, and because one in pinned memory that is written again before the copy
is made is copied as it then is; suggested where no line of the project says `non_blocking=True` yet.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Device, Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.INDEX_HOST,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "aten::index", "aten::index_put_", "mask_read", "mask_write")
REWRITES = ("make_number_on_device", "make_index_on_device", "register_buffer", "copy_index_without_waiting")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x), device=x.device)
            return x[order] + x[torch.tensor(0)]
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    index, taken = view.quote(site.operand), view.quote(site.node)
    if (
        site.operand is not None
        and site.fact_of(site.operand).device is Device.UNKNOWN
        and site.fact_of(site.operand).is_tensor
    ):
        return f"{index} is on the host where it was made here: {taken} then copies it first, and the host waits for the copy"
    return f"{index} is on the host: {taken} copies it to the device first, and the host waits for the copy"
