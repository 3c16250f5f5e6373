"""A recommender that looks up each item of a batch once: `unique` says which, and how many.

Fixed: every item is looked up where it stands.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, slots, width, rows = (2048, 16, 64, 50000) if device.type == "cuda" else (64, 8, 16, 2000)
    table = nn.Embedding(rows, width).to(device)
    tower = nn.Sequential(nn.Linear(slots * width, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1)).to(
        device
    )
    optimizer = torch.optim.Adagrad([*table.parameters(), *tower.parameters()], lr=0.01)
    ids = [torch.randint(0, rows // 4, (batch, slots)).to(device) for _ in range(4)]
    clicked = (torch.rand(batch) < 0.3).float().to(device)
    turn = 0

    def learn(rows: torch.Tensor) -> None:
        loss = F.binary_cross_entropy_with_logits(tower(rows.flatten(1))[:, 0], clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def as_written() -> None:
        nonlocal turn
        turn += 1
        once, inverse = torch.unique(ids[turn % 4], return_inverse=True)
        learn(table(once)[inverse])

    def fixed() -> None:
        nonlocal turn
        turn += 1
        learn(table(ids[turn % 4]))

    return lambda written: as_written() if written else fixed()
