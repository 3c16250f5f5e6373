"""A graph network on one graph: the loss takes the training nodes by a mask, and each epoch ends with three accuracies.

Fixed: the nodes' numbers are looked up once, before the loop, and the three counts are read as one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Convolution(nn.Module):
    """Each node adds up what its neighbours send."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = self.weight(x)
        return torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    nodes, features, width = (20000, 256, 128) if device.type == "cuda" else (1200, 32, 16)
    x = torch.randn(nodes, features).to(device)
    y = torch.randint(0, 7, (nodes,)).to(device)
    edges = torch.randint(0, nodes, (2, 6 * nodes)).to(device)
    drawn = torch.rand(nodes)
    train, validate, test = (
        (drawn < 0.4).to(device),
        ((drawn >= 0.4) & (drawn < 0.7)).to(device),
        (drawn >= 0.7).to(device),
    )
    convolutions = nn.ModuleList([Convolution(features, width), Convolution(width, width), Convolution(width, 7)]).to(
        device
    )
    optimizer = torch.optim.Adam(convolutions.parameters(), lr=0.01, weight_decay=5e-4)
    history: list[list[float]] = []

    def model() -> torch.Tensor:
        h = x
        for one in convolutions[:-1]:
            h = F.relu(one(h, edges) / 6)
        return convolutions[-1](h, edges) / 6

    def as_written() -> None:
        optimizer.zero_grad()
        out = model()
        loss = F.cross_entropy(out[train], y[train])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            pred = model().argmax(dim=-1)
            accuracies = []
            for mask in (train, validate, test):
                accuracies.append(int((pred[mask] == y[mask]).sum()) / int(mask.sum()))  # noqa: PERF401
        history.append([loss.item(), *accuracies])

    splits = [mask.nonzero().flatten() for mask in (train, validate, test)]
    goals = [y[split] for split in splits]
    sizes = [len(split) for split in splits]

    def fixed() -> None:
        optimizer.zero_grad()
        out = model()
        loss = F.cross_entropy(out[splits[0]], goals[0])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            pred = model().argmax(dim=-1)
            found = [(pred[split] == goal).sum() for split, goal in zip(splits, goals, strict=True)]
        read = torch.stack([loss.detach(), *(one.float() for one in found)]).tolist()
        history.append([read[0], *(one / size for one, size in zip(read[1:], sizes, strict=True))])

    return lambda written: as_written() if written else fixed()
