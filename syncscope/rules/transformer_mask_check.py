"""`nn.TransformerEncoder` with a padding mask.

Why it waits
------------
To take its fast path with nested tensors, the encoder looks into the mask: whether the padding stands at the end of each row.
`nn.TransformerEncoder(..., enable_nested_tensor=False)` does not look.

When a fix pays
---------------
In evaluation alone: in training the fast path is not taken, and nobody looks. No command writes it, since results at padded
places are then computed and not zero, and padding costs as much as the rest: it pays where padding is rare or sequences are
short. With long, mostly padded batches the fast path saves more than its check costs.
"""

from __future__ import annotations

import ast

from syncscope.codemod.patterns.fast_path import has_no_fast_path
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.TRANSFORMER_MASK,)
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
                layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
                self.encoder = nn.TransformerEncoder(layer, 2)

            def forward(self, x, padding):
                return self.encoder(x, src_key_padding_mask=padding)  # !
        """,
        instead="""
        import torch
        from torch import nn

        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
                self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

            def forward(self, x, padding):
                return self.encoder(x, src_key_padding_mask=padding)
        """,
    ),
    Example(
        """
        import torch
        from torch import nn

        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                layer = nn.TransformerEncoderLayer(64, 4)
                self.encoder = nn.TransformerEncoder(layer, 2)

            def forward(self, x, padding):
                return self.encoder(x, src_key_padding_mask=padding)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    function = view.function(site)
    made = function.maker(site.node.func) if isinstance(site.node, ast.Call) else None
    if made is not None and has_no_fast_path(made, function):
        return None
    flag = next((k.value for k in made.keywords if k.arg == "enable_nested_tensor"), None) if made is not None else None
    if isinstance(flag, ast.Constant) and flag.value is False:
        return None
    return f"{view.quote(site.node)} looks into its padding mask; enable_nested_tensor=False avoids it"
