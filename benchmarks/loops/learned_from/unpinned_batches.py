"""An autoencoder whose batches come out of the machine's memory as they are, and are copied while the host stands there.

Fixed: what is copied lies in pinned memory, and nobody waits for the copy. (Uploads to `ocl` do not wait: nothing is saved.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, inputs, width = (4096, 1024, 2048) if device.type == "cuda" else (64, 256, 96)
    data = torch.randn(6, batch, inputs)
    pinned = data.pin_memory() if device.type == "cuda" else data
    net = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 64), nn.ReLU(),
                        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, inputs)).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    turn = 0

    def learn(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        F.mse_loss(net(x), x).backward()
        optimizer.step()

    def as_written() -> None:
        nonlocal turn
        turn += 1
        learn(data[turn % 6].to(device))

    def fixed() -> None:
        nonlocal turn
        turn += 1
        learn(pinned[turn % 6].to(device, non_blocking=True))

    return lambda written: as_written() if written else fixed()
