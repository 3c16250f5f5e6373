"""`pack_padded_sequence` with lengths that are on the device.

Why it waits
------------
It takes the lengths on the host, because the shape of the packed sequence depends on them. Lengths that the loader counted can
stay on the host: do not move them to the device with the batch.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("pack_padded_sequence",)
SEEN_AS = (
    "aten::_pack_padded_sequence",
    "aten::_to_copy",
    "aten::copy_",
)
EXAMPLES = (
    Example(
        """
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        def forward(x: torch.Tensor, mask: torch.Tensor):
            lengths = mask.cuda().sum(dim=1)
            return pack_padded_sequence(x, lengths, batch_first=True)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"pack_padded_sequence needs {view.quote(site.operand)} on the host, and waits: keep the loader's lengths there"
    )
