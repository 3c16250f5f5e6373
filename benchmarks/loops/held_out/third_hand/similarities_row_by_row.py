"""Pictures pulled together and apart by a multi-similarity loss, which looks for the hard pairs of each row by boolean masks.

Fixed: the pairs of all rows are looked for at once, and weighted by 1 where they are hard, by 0 where not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

POSITIVE, NEGATIVE, LIMIT, MARGIN = 2.0, 40.0, 0.5, 0.1  # scales, and what is hard


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    kinds, each, width = (6, 4, 64) if device.type == "cuda" else (4, 2, 4)
    net = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(),
        nn.Linear(16 * width, 2 * width),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    batches = torch.randn(16, kinds * each, 3, 64, 64).to(device)
    labels = torch.arange(kinds).repeat_interleave(each).to(device)
    steps = 0

    def similarities() -> torch.Tensor:
        nonlocal steps
        pictures = batches[steps % 16]
        steps += 1
        found = F.normalize(net(pictures), dim=1)
        return found @ found.T

    def learn(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def as_written() -> None:
        all_rows = similarities()
        losses = []
        for label, row in zip(labels, all_rows, strict=True):
            positive = row[labels == label]
            positive = positive[positive < 1 - 1e-5]  # without itself
            negative = row[labels != label]
            hard_negative = negative[negative + MARGIN > positive.min()]
            hard_positive = positive[positive - MARGIN < negative.max()]
            if len(hard_negative) == 0 or len(hard_positive) == 0:
                continue
            pulled = torch.log(1 + torch.exp(-POSITIVE * (hard_positive - LIMIT)).sum()) / POSITIVE
            pushed = torch.log(1 + torch.exp(NEGATIVE * (hard_negative - LIMIT)).sum()) / NEGATIVE
            losses.append(pulled + pushed)
        if losses:
            learn(torch.stack(losses).sum() / len(labels))

    def fixed() -> None:
        rows = similarities()
        same = labels[:, None] == labels
        positive, negative = same & (rows < 1 - 1e-5), ~same
        nearest = rows.masked_fill(~negative, -torch.inf).amax(1, keepdim=True)
        farthest = rows.masked_fill(~positive, torch.inf).amin(1, keepdim=True)
        hard_negative = negative & (rows + MARGIN > farthest)
        hard_positive = positive & (rows - MARGIN < nearest)
        pulled = torch.log(1 + (torch.exp(-POSITIVE * (rows - LIMIT)) * hard_positive).sum(1)) / POSITIVE
        pushed = torch.log(1 + (torch.exp(NEGATIVE * (rows - LIMIT)) * hard_negative).sum(1)) / NEGATIVE
        counts = hard_negative.any(1) & hard_positive.any(1)
        learn(((pulled + pushed) * counts).sum() / len(labels))

    return lambda written: as_written() if written else fixed()
