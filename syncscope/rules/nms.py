"""Non-maximum suppression of boxes on the device.

Why it waits
------------
The result has a row for each box that is kept. The host must know how many there are to make it, so it waits until the device
has computed the boxes and everything before them. Several images or levels can share one wait: shift the boxes of each by
more than their size and suppress them together, as `batched_nms` does.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("nms",)
SEEN_AS = (
    "torchvision::nms",
    "aten::nonzero",
)
EXAMPLES = (
    Example(
        """
        import torch
        from torchvision.ops import nms

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            keep = nms(boxes, scores, 0.5)  # !
            return boxes.index_select(0, keep)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many boxes are kept"
