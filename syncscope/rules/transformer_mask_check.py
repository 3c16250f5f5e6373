"""`nn.TransformerEncoder` with a padding mask.

Why it waits
------------
To take its fast path with nested tensors, the encoder looks into the mask: whether the padding stands at the end of each row.
`nn.TransformerEncoder(..., enable_nested_tensor=False)` does not look.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("transformer_mask",)
SEEN_AS = (
    "aten::_nested_tensor_from_mask_left_aligned",
    "aten::item",
)
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2)

            def forward(self, x, padding):
                return self.encoder(x, src_key_padding_mask=padding)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} looks into its padding mask; enable_nested_tensor=False avoids it"
