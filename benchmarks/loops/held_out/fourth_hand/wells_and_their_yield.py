"""A Gaussian process over what a network makes of wells: its Cholesky factor is checked, and four numbers are shown a step.

Fixed: the factor is taken unchecked, the numbers are read once in fifty steps. The device is always behind: next to nothing.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

JITTER = 1e-4


def factor(matrix: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor, with so much more on the diagonal as it needs."""
    if torch.isnan(matrix).any():
        raise ValueError("the covariance holds a NaN")
    found, info = torch.linalg.cholesky_ex(matrix)
    more = JITTER
    while info.any():
        more *= 10
        found, info = torch.linalg.cholesky_ex(matrix + more * torch.eye(len(matrix), device=matrix.device))
    return found


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    wells, facts, hidden = (5120, 24, 256) if device.type == "cuda" else (96, 6, 16)
    net = nn.Sequential(
        nn.Linear(facts, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 3)
    ).to(device)
    lengths, scale, noise = (nn.Parameter(torch.full((n,), v).to(device)) for n, v in ((3, 0.5), (1, 0.5), (1, -1.0)))
    optimizer = torch.optim.Adam([*net.parameters(), lengths, scale, noise], lr=1e-3)
    x, there = torch.randn(wells, facts).to(device), torch.eye(wells).to(device)
    y = (x[:, 0].sin() + 0.3 * torch.randn(wells).to(device))[:, None]
    shown: list[dict[str, float]] = []
    kept: list[torch.Tensor] = []

    def covariance() -> torch.Tensor:
        points = net(x) / F.softplus(lengths)
        squares = points.square().sum(1)
        apart = (squares[:, None] + squares - 2 * points @ points.T).clamp_min(1e-10)
        near = (5 * apart).sqrt()
        return F.softplus(scale) * (1 + near + near.square() / 3) * torch.exp(-near) + F.softplus(noise) * there

    def learn(root: torch.Tensor) -> torch.Tensor:
        """By the likelihood of what the wells gave."""
        solved = torch.linalg.solve_triangular(root, y, upper=False)
        loss = (0.5 * solved.square().sum() + root.diagonal().log().sum()) / wells + 0.5 * math.log(2 * math.pi)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def as_written() -> None:
        loss = learn(factor(covariance()))
        numbers = {"loss": loss.item(), "scale": F.softplus(scale).item(), "noise": F.softplus(noise).item()}
        shown.append(numbers | {"length": F.softplus(lengths).mean().item()})

    def fixed() -> None:
        loss = learn(torch.linalg.cholesky_ex(covariance())[0])
        with torch.no_grad():
            parts = [F.softplus(scale), F.softplus(noise), F.softplus(lengths).mean()[None]]
            kept.append(torch.cat([loss[None], *parts]))
        if len(kept) == 50:
            names = ("loss", "scale", "noise", "length")
            shown.extend(dict(zip(names, numbers, strict=True)) for numbers in torch.stack(kept).tolist())
            kept.clear()

    return lambda written: as_written() if written else fixed()
