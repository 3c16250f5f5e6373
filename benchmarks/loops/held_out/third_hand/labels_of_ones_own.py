"""FixMatch: a network is taught by its own sure guesses, an average of it follows, and a step ends with four meters.

Fixed: the meters add up on the device and are read once in 64 steps. The device is always behind: next to nothing is saved.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def network(width: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(5):
        layers += [nn.BatchNorm2d(width), nn.LeakyReLU(0.1), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, many, width, side = (32, 7, 128, 32) if device.type == "cuda" else (3, 3, 16, 28)
    net = network(width).to(device)
    average = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4, nesterov=True)
    labelled, labels = torch.rand(batch, 3, side, side).to(device), torch.randint(0, 10, (batch,)).to(device)
    weak = torch.rand(many * batch, 3, side, side).to(device)
    strong = (weak.cpu() + 0.2 * torch.randn(many * batch, 3, side, side)).to(device)
    meters: list[list[float]] = [[], [], [], []]
    sums = torch.zeros(4, device=device)
    read: list[list[float]] = []
    steps = 0

    def learn() -> tuple[torch.Tensor, ...]:
        found = net(torch.cat([labelled, weak, strong]))
        known, guessed, to_learn = found.split([batch, many * batch, many * batch])
        supervised = F.cross_entropy(known, labels)
        sure, guess = guessed.detach().softmax(-1).max(-1)
        mask = (sure >= 0.11).float()
        own = (F.cross_entropy(to_learn, guess, reduction="none") * mask).mean()
        loss = supervised + own
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 0.001)
        return loss.detach(), supervised.detach(), own.detach(), mask.mean()

    def as_written() -> None:
        for meter, value in zip(meters, learn(), strict=True):
            meter.append(value.item())

    def fixed() -> None:
        nonlocal steps
        sums.add_(torch.stack(learn()))
        steps += 1
        if steps % 64 == 0:
            read.append((sums / 64).tolist())
            sums.zero_()

    return lambda written: as_written() if written else fixed()
