"""How long patients live, by Cox: three encoders of what is known; a mask takes those who died, if there are any at all.

Fixed: who died is a weight, the loader gives no batch without one, and the losses are read once in twenty steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def encoder(inputs: int, width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = []
    for place in range(depth):
        layers += [nn.Linear(width if place else inputs, width), nn.BatchNorm1d(width), nn.SELU(), nn.Dropout(0.2)]
    return nn.Sequential(*layers)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, depth = (1024, 768, 4) if device.type == "cuda" else (24, 16, 2)
    sizes = (2000, 1024, 64) if device.type == "cuda" else (64, 32, 8)
    encoders = nn.ModuleList([encoder(size, width, depth) for size in sizes])
    head = nn.Linear(width * len(sizes), 1)
    net = nn.ModuleList([encoders, head]).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-3)
    known = [torch.randn(batch, size).to(device) for size in sizes]
    until, died = torch.rand(batch).to(device), (torch.rand(batch) < 0.6).to(device)
    losses: list[float] = []
    kept: list[torch.Tensor] = []

    def risks() -> tuple[torch.Tensor, torch.Tensor]:
        """By how long they were seen, the longest first: the logarithms of a risk, and who died."""
        order = until.argsort(descending=True)
        found = head(torch.cat([one(x) for one, x in zip(encoders, known, strict=True)], 1))[:, 0]
        return found[order], died[order]

    def at_risk(risk: torch.Tensor) -> torch.Tensor:
        """The logarithm of what all that were seen as long risk."""
        most = risk.detach().max()
        return (risk - most).exp().cumsum(0).log() + most

    def learn(loss: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def as_written() -> None:
        if died.sum() == 0:
            return
        risk, event = risks()
        of_all = at_risk(risk)
        losses.append(learn(-(risk[event] - of_all[event]).mean()).item())

    def fixed() -> None:
        risk, event = risks()
        of_all = at_risk(risk)
        kept.append(learn(-((risk - of_all) * event).sum() / event.sum()))
        if len(kept) == 20:
            losses.extend(torch.stack(kept).tolist())
            kept.clear()

    return lambda written: as_written() if written else fixed()
