"""A language model over documents packed into one row: each layer asks anew how long each of them is, and attends inside of it.

Fixed: whoever packed the row knows the lengths, as Python's numbers, and each layer is given them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Block(nn.Module):
    """Attention inside of each document, and two layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, documents: torch.Tensor, lengths: list[int] | None) -> torch.Tensor:
        if lengths is None:
            lengths = torch.unique_consecutive(documents, return_counts=True)[1].tolist()
        found = []
        for one in self.qkv(self.norm1(x)).split(lengths):
            q, k, v = one.view(1, len(one), 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            found.append(seen[0].transpose(0, 1).flatten(1))
        x = x + self.out(torch.cat(found))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def packed(long: int, count: int) -> list[int]:
    """Lengths of so many documents that fill a row."""
    cuts = (torch.randperm(long // 8 - 1)[: count - 1] + 1).mul(8).sort().values.tolist()
    return [b - a for a, b in zip([0, *cuts], [*cuts, long], strict=True)]


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, heads, long, count, depth = (512, 8, 2048, 5, 4) if device.type == "cuda" else (16, 2, 96, 3, 3)
    words = 4000 if device.type == "cuda" else 100
    embed, head = nn.Embedding(words, width), nn.Linear(width, words)
    blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
    net = nn.ModuleList([embed, blocks, head]).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    rows = []
    for _number in range(4):
        lengths = packed(long, count)
        documents = torch.arange(count).repeat_interleave(torch.tensor(lengths))
        tokens = torch.randint(0, words, (long + 1,))
        rows.append((tokens.to(device), documents.to(device), lengths))
    steps = 0

    def learn(known: bool) -> None:
        nonlocal steps
        tokens, documents, lengths = rows[steps % len(rows)]
        steps += 1
        x = embed(tokens[:-1])
        for block in blocks:
            x = block(x, documents, lengths if known else None)
        loss = F.cross_entropy(head(x), tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return lambda written: learn(known=not written)
