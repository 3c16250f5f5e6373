"""Three voices are taken apart, in whatever order: the host reads how like each is to each, and tries the six orders.

Fixed: the six orders are tried on the device, for all mixtures at once.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

VOICES = 3
ORDERS = list(permutations(range(VOICES)))


class Wider(nn.Module):
    """A convolution that looks so far, beside a straight way."""

    def __init__(self, width: int, far: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.PReLU(), nn.GroupNorm(1, 2 * width),
            nn.Conv1d(2 * width, 2 * width, 3, padding=far, dilation=far, groups=2 * width), nn.PReLU(),
            nn.GroupNorm(1, 2 * width), nn.Conv1d(2 * width, width, 1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, depth, long = (8, 192, 8, 16000) if device.type == "cuda" else (4, 8, 3, 512)
    into, back = nn.Conv1d(1, width, 16, 8), nn.ConvTranspose1d(width, 1, 16, 8)
    middle = nn.Sequential(*(Wider(width, 2 ** (place % 6)) for place in range(depth)))
    masks = nn.Conv1d(width, VOICES * width, 1)
    net = nn.ModuleList([into, back, middle, masks]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    voices = torch.randn(batch, VOICES, long).to(device)
    mixtures = voices.sum(1, keepdim=True)
    orders = torch.tensor(ORDERS, device=device)
    columns = torch.arange(VOICES, device=device)

    def likeness() -> torch.Tensor:
        """SI-SDR of each voice that was found with each that there is, in dB: (batch, found, there)."""
        frames = torch.relu(into(mixtures))
        parts = frames[:, None] * masks(middle(frames)).view(batch, VOICES, width, -1).sigmoid()
        found = back(parts.flatten(0, 1)).view(batch, VOICES, -1)
        found, there = F.normalize(found, dim=-1), F.normalize(voices, dim=-1)
        squared = (found @ there.transpose(1, 2)).square()
        return 10 * (squared / (1 - squared + 1e-8) + 1e-8).log10()

    def learn(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()

    def as_written() -> None:
        like = likeness()
        best = [
            max(ORDERS, key=lambda order: sum(one[place][voice] for place, voice in enumerate(order)))
            for one in like.detach().cpu().tolist()
        ]
        chosen = like.gather(2, torch.tensor(best, device=device)[..., None])
        learn(-chosen.mean())

    def fixed() -> None:
        like = likeness()
        learn(-like[:, columns, orders].mean(-1).amax(1).mean())

    return lambda written: as_written() if written else fixed()
