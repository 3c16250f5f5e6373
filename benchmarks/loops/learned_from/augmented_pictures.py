"""A picture classifier whose batches are cropped and flipped by numpy, and that adds up loss and accuracy in every step.

Fixed: the sums stay on the device and are read once in fifty steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Net(nn.Module):
    """Three convolutions and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.second = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.third = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        x = F.relu(self.third(x))
        return self.head(x.mean((2, 3)))


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width = (256, 128) if device.type == "cuda" else (16, 8)
    rng = np.random.default_rng(0)
    pictures = rng.standard_normal((4 * batch, 3, 40, 40), dtype=np.float32)
    labels = rng.integers(0, 10, 4 * batch)
    net = Net(width).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def augmented() -> tuple[torch.Tensor, torch.Tensor]:
        chosen = rng.integers(0, len(pictures), batch)
        out = np.empty((batch, 3, 32, 32), dtype=np.float32)
        for i, n in enumerate(chosen):
            top, left = rng.integers(0, 9, 2)
            crop = pictures[n, :, top : top + 32, left : left + 32]
            out[i] = crop[:, :, ::-1] if rng.random() < 0.5 else crop
        return torch.from_numpy(out).to(device), torch.from_numpy(labels[chosen]).to(device)

    running = {"loss": 0.0, "correct": 0, "seen": 0}

    def as_written() -> None:
        inputs, targets = augmented()
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        running["loss"] += loss.item()
        running["correct"] += outputs.argmax(1).eq(targets).sum().item()
        running["seen"] += targets.size(0)

    sums = torch.zeros(2, device=device)
    steps = 0

    def fixed() -> None:
        nonlocal steps
        inputs, targets = augmented()
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            sums[0] += loss.detach()
            sums[1] += outputs.argmax(1).eq(targets).sum()
        steps += 1
        if steps % 50 == 0:
            running["loss"], running["correct"] = sums.tolist()

    return lambda written: as_written() if written else fixed()
