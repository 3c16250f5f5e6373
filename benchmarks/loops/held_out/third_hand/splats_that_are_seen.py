"""A picture as a sum of blots: those that a view sees, by a mask, note how they reach and are pushed; a smooth loss is kept.

Fixed: what is not seen gathers nothing, by `where`; the smooth loss stays on the device and is shown once in ten steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    blots, side, views = (4000, 64, 6) if device.type == "cuda" else (120, 16, 6)
    place = nn.Parameter((torch.rand(blots, 2) * 1.5).to(device))
    size = nn.Parameter(torch.full((blots, 2), -3.0).to(device))
    turned = nn.Parameter(torch.zeros(blots).to(device))
    dense = nn.Parameter(torch.zeros(blots).to(device))
    colour = nn.Parameter(torch.rand(blots, 3).to(device))
    optimizer = torch.optim.Adam([place, size, turned, dense, colour], lr=1e-3, eps=1e-15)
    grid = torch.stack(torch.meshgrid(*[torch.linspace(0, 1, side)] * 2, indexing="ij"), -1).view(-1, 2).to(device)
    corners = (torch.rand(views, 2) * 0.5).to(device)
    pictures = torch.rand(views, side * side, 3).to(device)
    reach, pushed, times = (torch.zeros(blots, device=device) for _ in range(3))
    shown: list[float] = []
    smooth, steps = 0.0, 0
    smooth_there = torch.zeros((), device=device)

    def render() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Loss, where the blots are in the view, and how far they reach."""
        nonlocal steps
        view = steps % views
        steps += 1
        middle = place - corners[view]
        middle.retain_grad()
        wide = size.exp()
        away = grid[None] - middle[:, None]
        cos, sin = turned.cos()[:, None], turned.sin()[:, None]
        along = (away[..., 0] * cos + away[..., 1] * sin) / wide[:, :1]
        across = (away[..., 1] * cos - away[..., 0] * sin) / wide[:, 1:]
        light = torch.exp(-0.5 * (along * along + across * across)) * dense.sigmoid()[:, None]
        loss = F.l1_loss(light.T @ colour, pictures[view])
        with torch.no_grad():
            inside = ((middle > 0) & (middle < 1)).all(1)
            radius = torch.where(inside, 3 * wide.amax(1), 0)
        loss.backward()
        return loss.detach(), middle, radius

    def as_written() -> None:
        nonlocal smooth
        loss, middle, radius = render()
        with torch.no_grad():
            smooth = 0.4 * loss.item() + 0.6 * smooth
            if steps % 10 == 0:
                shown.append(smooth)
            seen = radius > 0
            reach[seen] = torch.max(reach[seen], radius[seen])
            pushed[seen] += middle.grad[seen].norm(dim=-1)
            times[seen] += 1
        optimizer.step()
        optimizer.zero_grad()

    def fixed() -> None:
        loss, middle, radius = render()
        with torch.no_grad():
            smooth_there.mul_(0.6).add_(loss, alpha=0.4)
            if steps % 10 == 0:
                shown.append(smooth_there.item())
            seen = radius > 0
            torch.maximum(reach, radius, out=reach)
            pushed.add_(torch.where(seen, middle.grad.norm(dim=-1), 0))
            times.add_(seen)
        optimizer.step()
        optimizer.zero_grad()

    return lambda written: as_written() if written else fixed()
