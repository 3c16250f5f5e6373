"""Optical flow, bettered in twelve rounds: before the backward pass the errors of valid pixels go to the log, as four numbers.

Fixed: pixels that are not valid weigh nought; the four numbers add up on the device, and are read once in a hundred steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

ROUNDS, LEVELS, RADIUS, DECAY = 12, 3, 3, 0.8


class Cell(nn.Module):
    """What it remembers of the motion of each pixel, and what is to be added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        looked = LEVELS * (2 * RADIUS + 1) ** 2
        self.alike, self.moved = nn.Conv2d(looked, width, 1), nn.Conv2d(2, width // 2, 7, padding=3)
        self.both = nn.Conv2d(width + width // 2, width - 2, 3, padding=1)
        self.gates = nn.Conv2d(3 * width, 2 * width, 3, padding=1)
        self.new = nn.Conv2d(3 * width, width, 3, padding=1)
        self.head = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2, 3, padding=1))

    def forward(
        self, state: torch.Tensor, hint: torch.Tensor, alike: torch.Tensor, flow: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        motion = F.relu(self.both(torch.cat([F.relu(self.alike(alike)), F.relu(self.moved(flow))], 1)))
        given = torch.cat([hint, motion, flow], 1)
        update, reset = self.gates(torch.cat([state, given], 1)).sigmoid().chunk(2, 1)
        new = self.new(torch.cat([reset * state, given], 1)).tanh()
        state = (1 - update) * state + update * new
        return state, self.head(state)


def encoder(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width // 2, 7, 2, 3), nn.InstanceNorm2d(width // 2), nn.ReLU(),
        nn.Conv2d(width // 2, width, 3, 2, 1), nn.InstanceNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, 2, 1), nn.InstanceNorm2d(width), nn.ReLU(), nn.Conv2d(width, 2 * width, 1),
    )  # fmt: skip


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, high, wide = (3, 96, 256, 384) if device.type == "cuda" else (1, 8, 64, 64)
    features, context, cell = encoder(width).to(device), encoder(width).to(device), Cell(width).to(device)
    weights = [*features.parameters(), *context.parameters(), *cell.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-4)
    frames = torch.rand(2, batch, 3, high, wide).to(device)
    true = (4 * torch.randn(batch, 2, high, wide)).to(device)
    valid = (torch.rand(batch, high, wide) < 0.9).to(device)
    rows, columns = high // 8, wide // 8
    grid = torch.stack(torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy")).float().to(device)
    around = torch.stack(torch.meshgrid(*[torch.arange(-RADIUS, RADIUS + 1)] * 2, indexing="xy"), -1).float().to(device)
    scales = [
        torch.tensor([2 / max(1, (columns >> level) - 1), 2 / max(1, (rows >> level) - 1)]).to(device)
        for level in range(LEVELS)
    ]
    log: list[dict[str, float]] = []
    sums = torch.zeros(4, device=device)
    names = ("epe", "1px", "3px", "5px")
    steps = 0

    def looked_up(pyramid: list[torch.Tensor], places: torch.Tensor) -> torch.Tensor:
        """How alike the pixels around a place are, at each scale."""
        found = []
        for level, alike in enumerate(pyramid):
            there = places.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level + around
            near = F.grid_sample(alike, there * scales[level] - 1, align_corners=True)
            found.append(near.view(batch, rows, columns, -1))
        return torch.cat(found, -1).permute(0, 3, 1, 2)

    def flows() -> list[torch.Tensor]:
        """What is believed after each round, at the size of the frames."""
        one, two = features(frames.flatten(0, 1)).view(2, batch, -1, rows * columns)
        alike = (one.transpose(1, 2) @ two / one.shape[1] ** 0.5).view(-1, 1, rows, columns)
        pyramid = [alike]
        for _ in range(LEVELS - 1):
            pyramid.append(F.avg_pool2d(pyramid[-1], 2))
        state, hint = context(frames[0]).chunk(2, 1)
        state, hint = state.tanh(), hint.relu()
        flow, found = torch.zeros(batch, 2, rows, columns, device=device), []
        for _ in range(ROUNDS):
            flow = flow.detach()
            state, more = cell(state, hint, looked_up(pyramid, grid + flow), flow)
            flow = flow + more
            found.append(8 * F.interpolate(flow, (high, wide), mode="bilinear", align_corners=True))
        return found

    def loss_of(found: list[torch.Tensor]) -> torch.Tensor:
        weight = valid[:, None].float()
        parts = [DECAY**place * ((one - true).abs() * weight).mean() for place, one in enumerate(reversed(found))]
        return torch.stack(parts).sum()

    def learn(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()

    def as_written() -> None:
        found = flows()
        loss = loss_of(found)
        error = (found[-1].detach() - true).square().sum(1).sqrt()
        error = error.view(-1)[valid.view(-1)]
        one, three, five = ((error < pixels).float().mean().item() for pixels in (1, 3, 5))
        log.append({"epe": error.mean().item(), "1px": one, "3px": three, "5px": five})
        learn(loss)

    def fixed() -> None:
        nonlocal steps
        found = flows()
        loss = loss_of(found)
        with torch.no_grad():
            error = (found[-1] - true).square().sum(1).sqrt()
            parts = torch.stack([error, *((error < pixels).float() for pixels in (1, 3, 5))])
            sums.add_((parts * valid).sum((1, 2, 3)) / valid.sum())
        steps += 1
        if steps % 100 == 0:
            log.append(dict(zip(names, (sums / 100).tolist(), strict=True)))
            sums.zero_()
        learn(loss)

    return lambda written: as_written() if written else fixed()
