"""A recurrent cell, written as a loop over time: the host has far more to do than the device. The loss is read once a step.

Fixed: the loss is read once in fifty steps. Next to nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch, long = (64, 32, 48) if device.type == "cuda" else (8, 4, 24)
    cell, head = nn.GRUCell(16, width).to(device), nn.Linear(width, 1).to(device)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    series = torch.randn(long, batch, 16).to(device)
    goal = torch.randn(batch).to(device)
    losses: list[float] = []
    steps = 0

    def learn() -> torch.Tensor:
        h = torch.zeros(batch, width, device=device)
        for t in range(long):
            h = cell(series[t], h)
        loss = F.mse_loss(head(h)[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def as_written() -> None:
        loss = learn()
        losses.append(loss.item())

    def fixed() -> None:
        nonlocal steps
        loss = learn()
        steps += 1
        if steps % 50 == 0:
            losses.append(loss.item())

    return lambda written: as_written() if written else fixed()
