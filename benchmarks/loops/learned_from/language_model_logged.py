"""A language model that writes loss and gradient norm of every step, with a device that is always behind.

Fixed: written once in twenty steps. Next to nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Block(nn.Module):
    """Attention of one head, and two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        weights = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
        x = x + self.out(weights @ v)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch, long, words = (1024, 16, 512, 8000) if device.type == "cuda" else (64, 4, 64, 500)
    embed, head = nn.Embedding(words, width), nn.Linear(width, words)
    net = nn.Sequential(embed, *(Block(width) for _ in range(4)), head).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    tokens = torch.randint(0, words, (batch, long + 1)).to(device)
    log: list[str] = []
    steps = 0

    def learn() -> tuple[torch.Tensor, torch.Tensor]:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss, norm

    def as_written() -> None:
        loss, norm = learn()
        log.append(f"loss {loss.item():.4f}, norm {norm.item():.3f}")

    def fixed() -> None:
        nonlocal steps
        loss, norm = learn()
        steps += 1
        if steps % 20 == 0:
            log.append(f"loss {loss.item():.4f}, norm {norm.item():.3f}")

    return lambda written: as_written() if written else fixed()
