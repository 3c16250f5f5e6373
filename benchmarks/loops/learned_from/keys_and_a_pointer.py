"""Momentum contrast: a queue of keys whose place to write is a buffer on the device, and the accuracy in every step.

Fixed: the place is a number of Python's; the accuracy is read once in twenty steps.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Contrast(nn.Module):
    """Two encoders, of which one follows the other, and the queue."""

    def __init__(self, encoder: nn.Module, size: int, width: int) -> None:
        super().__init__()
        self.encoder_q, self.encoder_k = encoder, copy.deepcopy(encoder)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.size = size
        self.register_buffer("queue", F.normalize(torch.randn(width, size), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
        self.place = 0

    @torch.no_grad()
    def _momentum_update(self) -> None:
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True):
            k.data = k.data * 0.999 + q.data * 0.001

    @torch.no_grad()
    def _enqueue_as_written(self, keys: torch.Tensor) -> None:
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + len(keys)] = keys.T
        self.queue_ptr[0] = (ptr + len(keys)) % self.size

    @torch.no_grad()
    def _enqueue_fixed(self, keys: torch.Tensor) -> None:
        self.queue[:, self.place : self.place + len(keys)] = keys.T
        self.place = (self.place + len(keys)) % self.size

    def forward(self, one: torch.Tensor, two: torch.Tensor, written: bool) -> torch.Tensor:
        q = F.normalize(self.encoder_q(one), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.encoder_k(two), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        logits = torch.cat([positive, q @ self.queue.clone()], 1) / 0.07
        self._enqueue_as_written(k) if written else self._enqueue_fixed(k)
        return logits


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, out, size = (256, 96, 128, 16384) if device.type == "cuda" else (16, 8, 16, 512)
    encoder = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2 * width, out),
    )  # fmt: skip
    model = Contrast(encoder, size, out).to(device)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9)
    one, two = (torch.randn(batch, 3, 32, 32).to(device) for _ in range(2))
    labels = torch.zeros(batch, dtype=torch.long, device=device)
    meter: list[float] = []
    steps = 0

    def as_written() -> None:
        output = model(one, two, True)
        loss = F.cross_entropy(output, labels)
        accuracy = output.argmax(1).eq(labels).float().mean() * 100
        meter.append(accuracy.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def fixed() -> None:
        nonlocal steps
        output = model(one, two, False)
        loss = F.cross_entropy(output, labels)
        accuracy = output.argmax(1).eq(labels).float().mean() * 100
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 20 == 0:
            meter.append(accuracy.item())

    return lambda written: as_written() if written else fixed()
