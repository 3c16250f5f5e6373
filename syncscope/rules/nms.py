"""Non-maximum suppression of boxes on the device.

Why it waits
------------
The result has a row for each box that is kept. The host must know how many there are to make it, so it waits until the device
has computed the boxes and everything before them.

What to do
----------
- Ask once, not once for each image, level or class: `batched_nms` suppresses boxes of one group only by boxes of the same
  group, so a batch of images waits once.
- Keep a fixed number of boxes first, `scores.topk(1000)`: the wait stays, but there is less to wait for, and the shapes
  before it are fixed.
- Proposals of a training step need no exact suppression of those that the loss will sample from anyway. In evaluation, append
  boxes and scores to a list on the device and suppress when the loop is over.

When a fix pays
---------------
Where it runs for every image of a batch: one call for all waits once. Not in evaluation, where the boxes go to the host next.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.NMS,)
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
            kept = []
            for image in range(len(boxes)):
                kept.append(nms(boxes[image], scores[image], 0.5))  # !
            return kept
        """,
        instead="""
        import torch
        from torchvision.ops import batched_nms

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            image = torch.arange(len(boxes), device=boxes.device)[:, None].expand_as(scores)
            return batched_nms(boxes.flatten(0, 1), scores.flatten(), image.flatten(), 0.5)  # one wait for all images
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    taken = view.quote(site.node)
    return f"{taken} waits to learn how many boxes are kept: ask once for a whole batch, with batched_nms"
