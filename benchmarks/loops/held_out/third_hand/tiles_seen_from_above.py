"""What changed between two satellite tiles, bytes of ordinary memory that go up each step, right after the loss was read.

Fixed: pinned bytes (on CUDA), and losses read once in fifty steps. The device is always behind: next to nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def twice(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()
    )


class Changes(nn.Module):
    """A small U-Net that looks at both tiles, and tells from their difference."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fine, self.middle, self.coarse = twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up1, self.up2 = twice(6 * width, 2 * width), twice(3 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        fine = self.fine(torch.cat([before, after]))
        middle = self.middle(F.max_pool2d(fine, 2))
        coarse = self.coarse(F.max_pool2d(middle, 2))
        fine, middle, coarse = ((b - a).abs() for a, b in (one.chunk(2) for one in (fine, middle, coarse)))
        x = self.up1(torch.cat([F.interpolate(coarse, scale_factor=2), middle], 1))
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2), fine], 1))
        return self.head(x)[:, 0]


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    on_cuda = device.type == "cuda"
    batch, side, width = (4, 256, 128) if on_cuda else (2, 48, 16)
    net = Changes(width).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    tiles = [torch.randint(0, 256, (2, batch, 3, side, side), dtype=torch.uint8) for _ in range(4)]
    masks = [torch.randint(0, 2, (batch, side, side), dtype=torch.uint8) for _ in range(4)]
    pinned = [[one.pin_memory() for one in some] if on_cuda else some for some in (tiles, masks)]
    total, steps = 0.0, 0
    there = torch.zeros((), device=device)
    bar: list[float] = []

    def learn(both: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        before, after = both.float() / 255
        loss = F.binary_cross_entropy_with_logits(net(before, after), mask.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def as_written() -> None:
        nonlocal total, steps
        steps += 1
        both, mask = tiles[steps % 4].to(device), masks[steps % 4].to(device)
        total += learn(both, mask).item()
        bar.append(total / steps)

    def fixed() -> None:
        nonlocal steps
        steps += 1
        both, mask = (some[steps % 4].to(device, non_blocking=True) for some in pinned)
        there.add_(learn(both, mask))
        if steps % 50 == 0:
            bar.append(there.item() / steps)

    return lambda written: as_written() if written else fixed()
