"""`torch.multinomial` of weights on the device.

Why it waits
------------
It checks that no weight is negative, inf or NaN and that not all are zero. On CUDA the device looks into the answers itself
since pytorch/pytorch#134818 (2024), and nobody waits: measured with torch 2.11, with replacement and without. Older versions
and other devices (mps, what falls back to the CPU) read the answers on the host. So it is shown at low confidence only.

When a fix pays
---------------
Where it runs for every token or step and the number of classes is small: noise and an `argmax` go over all of them. Not for a
vocabulary that is drawn from once a batch. The place of the largest of the weights by exponential noise is drawn from the same
distribution without the checks; other numbers are drawn for the same seed.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.MULTINOMIAL,)
SEEN_AS = ("aten::multinomial", "aten::is_nonzero", "aten::item")
EXAMPLES = (
    Example(
        """
        import torch

        def draw(scores: torch.Tensor):
            return torch.multinomial(scores.softmax(-1), 1)  # !
        """,
        instead="""
        import torch

        def draw(scores: torch.Tensor):
            weight = scores.softmax(-1)
            return (weight / torch.empty_like(weight).exponential_()).argmax(-1, keepdim=True)
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"{view.quote(site.node)} checks its weights, and waits for the answer on mps and before pytorch/pytorch#134818"
    )


def certain(site: Site, function: Function) -> bool:
    return True  # what is drawn is the same, wherever the weights live
