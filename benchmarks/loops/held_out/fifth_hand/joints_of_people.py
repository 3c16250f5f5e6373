"""Where people's joints are, by heat maps: in every step those of the whole batch go to numpy, which says how many are right.

Fixed: the places and the share that is right are found on the device, and read with the loss once in fifty steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

JOINTS, NEAR = 17, 0.5


class Meter:
    """A mean of what is told."""

    def __init__(self) -> None:
        self.total = self.count = 0.0

    def update(self, value: float, count: int) -> None:
        self.total += value * count
        self.count += count


class Beside(nn.Module):
    """Two convolutions beside a straight way."""

    def __init__(self, enter: int, leave: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(enter, leave, 3, stride, 1, bias=False), nn.BatchNorm2d(leave), nn.ReLU(inplace=True),
            nn.Conv2d(leave, leave, 3, 1, 1, bias=False), nn.BatchNorm2d(leave),
        )  # fmt: skip
        short = nn.Sequential(nn.Conv2d(enter, leave, 1, stride, bias=False), nn.BatchNorm2d(leave))
        self.short: nn.Module = nn.Identity() if enter == leave else short

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.layers(x) + self.short(x))


def highest(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each map is highest, as x and y, and how high."""
    people, joints, _, wide = maps.shape
    flat = maps.reshape(people, joints, -1)
    place, height = np.argmax(flat, 2), np.amax(flat, 2)
    found = np.stack([place % wide, place // wide], -1).astype(np.float32)
    found *= (height > 0)[..., None]
    return found, height


def accuracy(out: np.ndarray, true: np.ndarray) -> tuple[float, int]:
    """The share of joints that are found, a mean over joints, and how many joints there are to find."""
    found, _ = highest(out)
    wanted, _ = highest(true)
    unit = np.array(out.shape[:1:-1], np.float32) / 10
    apart = np.full((JOINTS, len(out)), -1.0)
    for person in range(len(out)):
        for joint in range(JOINTS):
            if wanted[person, joint, 0] > 1 and wanted[person, joint, 1] > 1:
                apart[joint, person] = np.linalg.norm((found[person, joint] - wanted[person, joint]) / unit)
    shares = [float((one[one >= 0] < NEAR).mean()) for one in apart if (one >= 0).any()]
    return (sum(shares) / len(shares), len(shares)) if shares else (0.0, 0)


def places(maps: torch.Tensor) -> torch.Tensor:
    """As `highest`, on the device."""
    height, place = maps.flatten(2).max(2)
    wide = maps.shape[3]
    return torch.stack([place % wide, place // wide], -1) * (height > 0)[..., None]


def accuracy_there(out: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """As `accuracy`, on the device: both numbers."""
    found, wanted = places(out), places(true)
    wide, high = out.shape[3] / 10, out.shape[2] / 10
    apart = found - wanted
    near = torch.hypot(apart[..., 0] / wide, apart[..., 1] / high) < NEAR
    there = (wanted > 1).all(-1)
    each = there.sum(0)
    shares = (near & there).sum(0) / each.clamp_min(1)
    joints = (each > 0).sum()
    return torch.stack([shares.sum() / joints.clamp_min(1), joints.to(shares.dtype)])


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    people, width, up, high, wide = (48, 64, 256, 256, 192) if device.type == "cuda" else (2, 4, 4, 32, 32)
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    last = width
    for place, depth in enumerate((3, 4, 6, 3) if device.type == "cuda" else (1, 1, 1, 1)):
        wider = width << place
        layers.append(Beside(last, wider, 1 + (place > 0)))
        layers += [Beside(wider, wider, 1) for _ in range(depth - 1)]
        last = wider
    for _ in range(3):
        layers += [nn.ConvTranspose2d(last, up, 4, 2, 1, bias=False), nn.BatchNorm2d(up), nn.ReLU(inplace=True)]
        last = up
    net = nn.Sequential(*layers, nn.Conv2d(up, JOINTS, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    # a map is a blob around each joint that is seen
    across, down = torch.arange(wide // 4), torch.arange(high // 4)[:, None]
    where = torch.rand(4, people, JOINTS, 2, 1, 1) * torch.tensor([wide // 4, high // 4])[:, None, None]
    maps = torch.exp(-((across - where[:, :, :, 0]) ** 2 + (down - where[:, :, :, 1]) ** 2) / 8)
    seen = (torch.rand(4, people, JOINTS, 1, 1) < 0.8).float()
    maps, seen = (maps * seen).to(device), seen.to(device)
    pictures = torch.randn(4, people, 3, high, wide).to(device)
    losses, right = Meter(), Meter()
    kept: list[torch.Tensor] = []
    steps = 0

    def learn() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        nonlocal steps
        place = steps % len(pictures)
        steps += 1
        out, true = net(pictures[place]), maps[place]
        loss = 0.5 * ((out - true).square() * seen[place]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), out.detach(), true

    def as_written() -> None:
        loss, out, true = learn()
        losses.update(loss.item(), people)
        share, count = accuracy(out.cpu().numpy(), true.cpu().numpy())
        right.update(share, count)

    def fixed() -> None:
        loss, out, true = learn()
        kept.append(torch.cat([loss[None], accuracy_there(out, true)]))
        if len(kept) == 50:
            for number, share, count in torch.stack(kept).tolist():
                losses.update(number, people)
                right.update(share, int(count))
            kept.clear()

    return lambda written: as_written() if written else fixed()
