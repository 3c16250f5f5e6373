"""Neurons that fire, over twenty moments: how many of each layer do, and how near the others are, is read after each moment.

Fixed: they are kept as tensors, and read as one list at the end of the step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

MOMENTS, LEAK = 20, 0.9


class Fire(torch.autograd.Function):
    """A neuron fires or not; backwards as if it did so by degrees."""

    @staticmethod
    def forward(context: Any, over: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(over)
        return (over > 0).type_as(over)

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> torch.Tensor:
        (over,) = context.saved_tensors
        return grads[0] / (1 + 10 * over.abs()).square()


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, side = (64, 64, 32) if device.type == "cuda" else (2, 4, 8)
    layers = nn.ModuleList([
        nn.Conv2d(2, width, 3, padding=1), nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(width, 2 * width, 3, 2, 1),
        nn.Sequential(nn.Flatten(), nn.Linear(2 * width * (side // 4) ** 2, 11)),
    ]).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    events = (torch.rand(MOMENTS, batch, 2, side, side) < 0.2).float().to(device)
    labels = torch.randint(0, 11, (batch,)).to(device)
    fired: list[list[float]] = []

    def learn(asks: bool) -> list[Any]:
        """By how often those of the last layer fire; what each layer did at each moment."""
        charges: list[Any] = [0.0] * len(layers)
        seen: list[Any] = []
        total = torch.zeros(batch, 11, device=device)
        for x in events:
            for place, layer in enumerate(layers):
                charge = LEAK * charges[place] + layer(x)
                x = Fire.apply(charge - 0.3)
                charges[place] = charge - 0.3 * x.detach()
                rate, near = x.detach().mean(), charges[place].detach().mean()
                seen += [rate.item(), near.item()] if asks else [rate, near]
            total = total + x
        loss = F.cross_entropy(total / MOMENTS, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return seen

    def fixed() -> None:
        fired.append(torch.stack(learn(asks=False)).tolist())

    return lambda written: fired.append(learn(asks=True)) if written else fixed()
