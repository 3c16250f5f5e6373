"""A segmentation network that counts, in every step, which class was taken for which, without the border's pixels.

Fixed: each pixel adds its weight, 0 or 1, to a matrix of a known size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

CLASSES, BORDER = 8, 255


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, side, width = (8, 128, 48) if device.type == "cuda" else (2, 24, 8)
    net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                        nn.Conv2d(width, CLASSES, 1)).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    images = torch.randn(batch, 3, side, side).to(device)
    labels = torch.randint(0, CLASSES, (batch, side, side))
    labels[torch.rand(batch, side, side) < 0.1] = BORDER
    target = labels.to(device)
    confusion = torch.zeros(CLASSES * CLASSES, dtype=torch.long, device=device)
    weighed = torch.zeros(CLASSES * CLASSES, device=device)

    def learn() -> torch.Tensor:
        out = net(images)
        loss = F.cross_entropy(out, target, ignore_index=BORDER)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return out.detach()

    def as_written() -> None:
        predicted = learn().argmax(1)
        keep = target != BORDER
        pairs = CLASSES * target[keep] + predicted[keep]
        confusion.add_(torch.bincount(pairs, minlength=CLASSES * CLASSES))

    def fixed() -> None:
        predicted = learn().argmax(1)
        keep = target != BORDER
        pairs = (CLASSES * target + predicted).masked_fill(~keep, 0)
        weighed.index_add_(0, pairs.flatten(), keep.flatten().float())

    return lambda written: as_written() if written else fixed()
