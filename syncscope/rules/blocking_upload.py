"""A copy from the host to the device that the host waits for: `x.to(device)`, `x.cuda()`.

Why it waits
------------
Memory that is not pinned can be paged out, so the host copies it itself and goes on only afterwards. From pinned memory,
and with `non_blocking=True`, the device fetches it while the host goes on.

When a fix pays
---------------
For batches of megabytes, and where the device still has work when the copy is asked for; the loader must pin its memory. Not
for a few numbers, and not where the step waits for the loader anyway.

Fix safety
----------
Unsafe, because the tensor on the host must then not be written before the copy is done; a batch of a loader never is. Where
the loader is made in the same function, it gets `pin_memory=True`, without which `non_blocking=True` changes little.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.TO_DEVICE,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "write_buffer", "write_image")
REWRITES = ("copy_without_waiting",)
EXAMPLES = (
    Example(
        """
        import torch
        from torch.utils.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64, pin_memory=True)
            for x, y in loader:
                x = x.to(device, non_blocking=True)
                model(x).mean().backward()
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} copies from the host and waits for it: pin the memory and say non_blocking=True"
