"""Flow matching by a large transformer: after each step the losses are logged by how much noise there was.

Fixed: losses are added up on the device by their bucket of time, and read once in a hundred steps. Next to nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

BUCKETS = 10


class Block(nn.Module):
    """A block of a diffusion transformer: what time it is shifts and scales it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.changes = nn.Linear(width, 4 * width)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift1, scale1, shift2, scale2 = self.changes(F.silu(time))[:, None].chunk(4, -1)
        y = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        y = self.norm2(x) * (1 + scale2) + shift2
        return x + self.down(F.gelu(self.up(y)))


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, heads, batch, patches, depth = (1024, 16, 32, 256, 4) if device.type == "cuda" else (64, 4, 8, 64, 2)
    enter, leave, when = nn.Linear(16, width), nn.Linear(width, 16), nn.Linear(1, width)
    blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
    net = nn.ModuleList([enter, leave, when, blocks]).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    latents = torch.randn(batch, patches, 16).to(device)
    by_time: list[list[float]] = [[] for _ in range(BUCKETS)]
    sums = torch.zeros(2, BUCKETS, device=device)
    ones = torch.ones(batch, device=device)
    means: list[list[float]] = []
    steps = 0

    def learn() -> tuple[torch.Tensor, torch.Tensor]:
        """Times and losses of the samples."""
        noise, time = torch.randn_like(latents), torch.rand(batch, device=device)
        along = time[:, None, None]
        x, hint = enter((1 - along) * latents + along * noise), when(time[:, None])
        for block in blocks:
            x = block(x, hint)
        losses = (leave(x) - (noise - latents)).square().mean((1, 2))
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        return time, losses.detach()

    def as_written() -> None:
        time, losses = learn()
        for when_it_was, loss in zip(time.tolist(), losses.tolist(), strict=True):
            by_time[min(int(BUCKETS * when_it_was), BUCKETS - 1)].append(loss)

    def fixed() -> None:
        nonlocal steps
        time, losses = learn()
        bucket = (BUCKETS * time).long().clamp_(max=BUCKETS - 1)
        sums[0].index_add_(0, bucket, losses)
        sums[1].index_add_(0, bucket, ones)
        steps += 1
        if steps % 100 == 0:
            means.append((sums[0] / sums[1]).tolist())
            sums.zero_()

    return lambda written: as_written() if written else fixed()
