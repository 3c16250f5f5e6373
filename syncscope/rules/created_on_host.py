"""A tensor made on the host and then moved: `torch.zeros(n).to(device)`.

Why it waits
------------
The host fills the memory itself, copies it to the device and waits for the copy. With `device=` the device makes it.

Fix safety
----------
Safe for zeros, ones and numbers of one value: the same tensor. Unsafe for random numbers, because the device's generator
draws other ones for the same seed, and for ranges, whose last bits may differ.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.CREATED_ON_HOST,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to")
REWRITES = ("create_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x + torch.ones(x.shape[1], device=x.device)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} is made on the host, copied to the device, and waited for: device= makes it there"
