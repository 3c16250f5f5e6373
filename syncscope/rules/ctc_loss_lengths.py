"""`ctc_loss` with lengths that are on the device.

Why it waits
------------
The host works out sizes and checks from the lengths. Lengths that the loader counted can be given as they are, on the host, or
as tuples.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("ctc_loss",)
SEEN_AS = (
    "aten::_ctc_loss",
    "aten::item",
    "aten::_to_copy",
)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(scores: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor, sizes: torch.Tensor):
            return F.ctc_loss(scores, target, lengths.cuda(), sizes)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"ctc_loss needs the lengths on the host, and waits for {view.quote(site.operand)}: keep the loader's lengths there"
