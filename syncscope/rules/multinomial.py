"""`torch.multinomial` of weights on the device.

Why it waits
------------
It checks that no weight is negative, inf or NaN and that not all are zero. On CUDA the device looks into the answers itself
since pytorch/pytorch#134818 (2024), and nobody waits: measured with torch 2.11, with replacement and without. Older versions
and other devices (mps, what falls back to the CPU) read the answers on the host. So it is shown at low confidence only.

Fix safety
----------
One draw is the place of the largest of `weights / exponential noise`: the same distribution without the checks. It is
suggested, not applied, because other numbers are drawn for the same seed.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("multinomial",)
SEEN_AS = ("aten::multinomial", "aten::is_nonzero", "aten::item")
EXAMPLES = (
    Example(
        """
        import torch

        def sample(logits: torch.Tensor):
            weights = logits.softmax(dim=-1)
            return torch.multinomial(weights, 1)  # !
        """,
        """
        import torch

        def sample(logits: torch.Tensor):
            weights = logits.softmax(dim=-1)
            return (weights / torch.empty_like(weights).exponential_()).argmax(dim=-1, keepdim=True)
        """,
        Safety.SUGGEST,
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"{view.quote(site.node)} checks its weights, and waits for the answer on mps and before pytorch/pytorch#134818"
    )


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or not isinstance(op.base, ast.Name):
        return None
    count = op.argument(0, "num_samples")
    if count is None or function.constant(count) != 1 or "generator" in op.keywords:
        return None
    draft = function.draft()
    draft.replace(site.node, "({w} / torch.empty_like({w}).exponential_()).argmax(dim=-1, keepdim=True)", w=op.base)
    return draft.fix("take the largest of noisy weights", Safety.SUGGEST, "other numbers are drawn for the same seed")
