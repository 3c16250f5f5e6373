"""A graph network that forgets half of the edges in each step: those that are left are looked up by a mask drawn on the device.

Fixed: all edges are walked, weighted by 1 or 0. That is twice the work, and the device has much to do: nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

KEPT = 0.5


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    nodes, edges_each, width, depth = (100000, 20, 128, 3) if device.type == "cuda" else (2000, 8, 32, 3)
    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
    head = nn.Linear(width, 16)
    net = nn.ModuleList([layers, head]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(nodes, width).to(device), torch.randint(0, 16, (nodes,)).to(device)
    edges = torch.randint(0, nodes, (2, nodes * edges_each)).to(device)

    def learn(edges: torch.Tensor, weights: torch.Tensor | None) -> None:
        h = x
        for layer in layers:
            sent = h[edges[0]] if weights is None else h[edges[0]] * weights[:, None]
            heard = torch.zeros_like(h).index_add_(0, edges[1], sent)
            h = F.relu(layer(h + heard / (KEPT * edges_each)))
        loss = F.cross_entropy(head(h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def as_written() -> None:
        kept = torch.rand(edges.shape[1], device=device) < KEPT
        learn(edges[:, kept], None)

    def fixed() -> None:
        kept = torch.rand(edges.shape[1], device=device) < KEPT
        learn(edges, kept.float())

    return lambda written: as_written() if written else fixed()
