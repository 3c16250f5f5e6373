"""Tours are drawn city by city until all have been visited, which the device is asked, and whether each choice is allowed.

Fixed: a tour has as many choices as there are cities, and what the mask forbids is never drawn; it is drawn unchecked.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Block(nn.Module):
    """Each city looks at all others."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = self.norm1(x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.relu(self.up(x))))


def drawn(chances: torch.Tensor, checked: bool) -> torch.Tensor:
    """One of each row: what `multinomial` draws."""
    if checked:
        return chances.multinomial(1)
    return (chances / torch.empty_like(chances).exponential_()).argmax(-1, keepdim=True)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, many, width, heads, depth = (512, 30, 128, 8, 3) if device.type == "cuda" else (8, 6, 16, 2, 2)
    enter, blocks = nn.Linear(2, width), nn.Sequential(*(Block(width, heads) for _ in range(depth)))
    about, keys = nn.Linear(3 * width, width), nn.Linear(width, 3 * width)
    out = nn.Linear(width, width)
    net = nn.ModuleList([enter, blocks, about, keys, out]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    maps = torch.rand(4, batch, many, 2).to(device)
    steps = 0

    def tours(cities: torch.Tensor, greedy: bool, asks: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """How long they are, and how likely they were."""
        h = blocks(enter(cities))
        whole = h.mean(1)
        k, v, ends = keys(h).chunk(3, -1)
        k, v = (one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in (k, v))
        place = torch.zeros(batch, 1, dtype=torch.long, device=device)
        visited = torch.zeros(batch, many, dtype=torch.bool, device=device).scatter(1, place, True)
        first = h[:, 0]
        order, likely = [place], torch.zeros(batch, device=device)
        while (not visited.all()) if asks else (len(order) < many):
            last = h.gather(1, place[..., None].expand(-1, -1, width))[:, 0]
            q = about(torch.cat([whole, first, last], -1)).view(batch, heads, 1, -1)
            seen = (q @ k.transpose(-1, -2) / (width // heads) ** 0.5).masked_fill(visited[:, None, None], -torch.inf)
            glimpse = out((seen.softmax(-1) @ v).flatten(1))
            scores = 10 * torch.tanh((ends @ glimpse[..., None])[..., 0] / width**0.5)
            logs = F.log_softmax(scores.masked_fill(visited, -torch.inf), -1)
            if asks:
                assert not torch.isnan(logs).any()
            place = logs.argmax(-1, keepdim=True) if greedy else drawn(logs.detach().exp(), asks)
            if asks:
                assert not visited.gather(1, place).any(), "a city is visited twice"
            visited = visited.scatter(1, place, True)
            likely = likely + logs.gather(1, place)[:, 0]
            order.append(place)
        way = cities.gather(1, torch.cat(order, 1)[..., None].expand(-1, -1, 2))
        return (way - way.roll(-1, 1)).norm(dim=-1).sum(1), likely

    def learn(asks: bool) -> None:
        nonlocal steps
        cities = maps[steps % len(maps)]
        steps += 1
        with torch.no_grad():
            usual, _ = tours(cities, True, asks)
        long, likely = tours(cities, False, asks)
        loss = ((long - usual).detach() * likely).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return lambda written: learn(asks=written)
