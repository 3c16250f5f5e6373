"""`nn.TransformerEncoder(...)` with `enable_nested_tensor=False`.

It waits for code like AllenNLP's `pytorch_transformer_wrapper.py`: an encoder of `__init__` that is given a padding mask.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

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


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.node, ast.Call) or (made := function.maker(site.node.func)) is None:
        return None
    if not (function.dotted(made.func) or "").endswith(".TransformerEncoder") or len(made.args) > 3:
        return None
    if any(k.arg in ("enable_nested_tensor", None) for k in made.keywords):
        return None
    draft = Draft(function)
    draft.replace(made, "{call}", call=draft.call(made, {}, enable_nested_tensor="False"))
    return draft.fix(
        "do not look for a fast path",
        Safety.UNSAFE,
        "in evaluation, results at padded places are computed and not zero, and padding costs as much as the rest",
    )
