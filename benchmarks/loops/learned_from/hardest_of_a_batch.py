"""Online hard examples: how many of a batch's losses are high is asked of the device, and so many are kept.

Fixed: the high ones are weighted by 1, the others by 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch = (1024, 4096) if device.type == "cuda" else (64, 64)
    layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    net = nn.Sequential(*layers, nn.Linear(width, 20)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, 20, (batch,)).to(device)

    def as_written() -> None:
        losses = F.cross_entropy(net(x), y, reduction="none")
        hard = losses > losses.mean()
        if hard.sum() < 8:
            loss = losses.topk(8).values.mean()
        else:
            loss = losses[hard].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def fixed() -> None:
        losses = F.cross_entropy(net(x), y, reduction="none")
        hard = (losses > losses.mean()).float()
        most = losses.topk(8).values.mean()
        loss = torch.where(hard.sum() < 8, most, (losses * hard).sum() / hard.sum().clamp(min=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return lambda written: as_written() if written else fixed()
