"""`nn.TransformerEncoder` with a padding mask.

Why it waits
------------
To take its fast path with nested tensors, the encoder looks into the mask: whether the padding stands at the end of each row.
`nn.TransformerEncoder(..., enable_nested_tensor=False)` does not look.

Fix safety
----------
Unsafe, because in evaluation the results at padded places are then computed and not zero, and padding costs as much as the
rest. In training the fast path is not taken, and nothing changes.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

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
                layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
                self.encoder = nn.TransformerEncoder(layer, 2)

            def forward(self, x, padding):
                return self.encoder(x, src_key_padding_mask=padding)  # !
        """,
        """
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
        Safety.UNSAFE,
    ),
)


def message(site: Site, view: View) -> str | None:
    made = view.function(site).maker(site.node.func) if isinstance(site.node, ast.Call) else None
    flag = next((k.value for k in made.keywords if k.arg == "enable_nested_tensor"), None) if made is not None else None
    if isinstance(flag, ast.Constant) and flag.value is False:
        return None
    return f"{view.quote(site.node)} looks into its padding mask; enable_nested_tensor=False avoids it"


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.node, ast.Call) or (made := function.maker(site.node.func)) is None:
        return None
    if not (function.dotted(made.func) or "").endswith(".TransformerEncoder") or len(made.args) > 3:
        return None
    if any(k.arg in ("enable_nested_tensor", None) for k in made.keywords):
        return None
    draft = function.draft()
    draft.replace(made, "{call}", call=draft.call(made, {}, enable_nested_tensor="False"))
    return draft.fix(
        "do not look for a fast path",
        Safety.UNSAFE,
        "in evaluation, results at padded places are computed and not zero, and padding costs as much as the rest",
    )
