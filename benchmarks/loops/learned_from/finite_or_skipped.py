"""A large network that is asked in every step whether its loss is finite. The device has far more to do than the host.

Fixed: asked once in a hundred steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch, depth = (6144, 4096, 4) if device.type == "cuda" else (256, 128, 4)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())]
    net = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)
    steps = 0

    def as_written() -> None:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        if not torch.isfinite(loss):
            return
        loss.backward()
        optimizer.step()

    def fixed() -> None:
        nonlocal steps
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        steps += 1
        if steps % 100 == 0 and not torch.isfinite(loss):
            return
        loss.backward()
        optimizer.step()

    return lambda written: as_written() if written else fixed()
