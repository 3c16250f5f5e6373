"""Gradients clipped by a loop of one's own, with a number read for every parameter.

Fixed: `clip_grad_norm_`, which reads nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch, depth = (1024, 512, 12) if device.type == "cuda" else (64, 32, 6)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
    net = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)

    def as_written() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        total = 0.0
        for p in net.parameters():
            if p.grad is not None:
                total += p.grad.norm(2).item() ** 2
        total = total**0.5
        if total > 1.0:
            for p in net.parameters():
                if p.grad is not None:
                    p.grad.mul_(1.0 / (total + 1e-6))
        optimizer.step()

    def fixed() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return lambda written: as_written() if written else fixed()
