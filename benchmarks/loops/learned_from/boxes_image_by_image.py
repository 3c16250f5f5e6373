"""A detector's loss that goes through the images of a batch, and through those anchors of each that overlap a box.

Fixed: one loss over all images, weighted by which anchors overlap.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def overlap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The intersection over union of boxes (..., n, 4) and (..., m, 4)."""
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    size = (high - low).clamp(min=0)
    both = size[..., 0] * size[..., 1]
    area = lambda box: (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])  # noqa: E731
    return both / (area(a)[..., :, None] + area(b)[..., None, :] - both)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, side, width = (16, 64, 64) if device.type == "cuda" else (4, 16, 8)
    net = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, 5, 1),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    images = torch.randn(batch, 3, side, side).to(device)
    spots = torch.cartesian_prod(torch.arange(side), torch.arange(side)).float() / side
    anchors = torch.cat([spots - 0.1, spots + 0.1], 1).to(device)
    corner = torch.rand(batch, 6, 2)
    targets = torch.cat([corner, corner + 0.2], -1).to(device)

    def outputs() -> tuple[torch.Tensor, torch.Tensor]:
        out = net(images).flatten(2)
        return out[:, 0], out[:, 1:].transpose(1, 2)

    def as_written() -> None:
        scores, deltas = outputs()
        losses = []
        for image in range(batch):
            best, which = overlap(anchors, targets[image]).max(dim=1)
            positive = best > 0.5
            loss = F.binary_cross_entropy_with_logits(scores[image], positive.float())
            if positive.any():
                wanted = targets[image][which[positive]] - anchors[positive]
                loss = loss + F.smooth_l1_loss(deltas[image][positive], wanted)
            losses.append(loss)
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()

    def fixed() -> None:
        scores, deltas = outputs()
        best, which = overlap(anchors.expand(batch, -1, -1), targets).max(dim=2)
        positive = (best > 0.5).float()
        loss = F.binary_cross_entropy_with_logits(scores, positive)
        wanted = targets.gather(1, which[..., None].expand(-1, -1, 4)) - anchors
        each = F.smooth_l1_loss(deltas, wanted, reduction="none").mean(-1) * positive
        loss = loss + (each.sum(1) / positive.sum(1).clamp(min=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return lambda written: as_written() if written else fixed()
