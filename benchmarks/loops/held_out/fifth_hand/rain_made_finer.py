"""Fine rain from coarse, by diffusion: an average of the network counts its updates on the device; loss and norm are printed.

Fixed: the average counts in Python, and what would be printed is kept and read once in fifty steps.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

TIMES = 1000


class Block(nn.Module):
    """Two convolutions that know how much noise there is."""

    def __init__(self, enter: int, leave: int, told: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, enter), nn.GroupNorm(4, leave)
        self.conv1, self.conv2 = nn.Conv2d(enter, leave, 3, padding=1), nn.Conv2d(leave, leave, 3, padding=1)
        self.told = nn.Linear(told, leave)
        self.short: nn.Module = nn.Identity() if enter == leave else nn.Conv2d(enter, leave, 1)

    def forward(self, x: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.told(F.silu(told))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.short(x)


class Finer(nn.Module):
    """A U whose way up sees what its way down saw."""

    def __init__(self, width: int) -> None:
        super().__init__()
        told = 4 * width
        self.width = width
        self.tell = nn.Sequential(nn.Linear(width, told), nn.SiLU(), nn.Linear(told, told))
        self.enter = nn.Conv2d(2, width, 3, padding=1)
        wide = [width, width, 2 * width, 2 * width, 4 * width]
        pairs = list(itertools.pairwise(wide))
        self.down = nn.ModuleList(nn.ModuleList([Block(a, b, told), Block(b, b, told)]) for a, b in pairs)
        self.shrink = nn.ModuleList(nn.Conv2d(b, b, 3, 2, 1) for _, b in pairs)
        self.middle = nn.ModuleList([Block(wide[-1], wide[-1], told), Block(wide[-1], wide[-1], told)])
        self.up = nn.ModuleList(nn.ModuleList([Block(2 * b, a, told), Block(a, a, told)]) for a, b in reversed(pairs))
        self.leave = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        pitches = torch.exp(torch.linspace(0, -9, self.width // 2, device=x.device))
        angles = times[:, None] * pitches
        told = self.tell(torch.cat([angles.sin(), angles.cos()], 1))
        h = self.enter(x)
        seen = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            for block in blocks:
                h = block(h, told)
            seen.append(h)
            h = shrink(h)
        for block in self.middle:
            h = block(h, told)
        for blocks in self.up:
            h = torch.cat([F.interpolate(h, scale_factor=2.0), seen.pop()], 1)
            for block in blocks:
                h = block(h, told)
        return self.leave(h)


class Average(nn.Module):
    """The network as it was on average; in the beginning the average forgets faster."""

    decay: torch.Tensor
    updates: torch.Tensor

    def __init__(self, net: nn.Module, decay: float) -> None:
        super().__init__()
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.register_buffer("decay", torch.tensor(decay))
        self.register_buffer("updates", torch.tensor(0))
        self.most, self.count = decay, 0  # both of them, for those who do not ask the device

    @torch.no_grad()
    def follow(self, net: nn.Module, decay: Any) -> None:
        shadows = dict(self.net.named_parameters())
        for name, one in net.named_parameters():
            shadow = shadows[name]
            shadow.sub_((1.0 - decay) * (shadow - one))

    def update(self, net: nn.Module) -> None:
        self.updates += 1
        self.follow(net, min(self.decay, (1 + self.updates) / (10 + self.updates)))

    def update_unasked(self, net: nn.Module) -> None:
        self.count += 1
        self.follow(net, min(self.most, (1 + self.count) / (10 + self.count)))


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, side, width = (32, 96, 64) if device.type == "cuda" else (2, 16, 8)
    net = Finer(width).to(device)
    average = Average(net, 0.9999).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    rain = F.avg_pool2d(torch.randn(4 * batch, 1, side + 4, side + 4), 5, 1).relu().unflatten(0, (4, batch)).to(device)
    kept_share = (1 - torch.linspace(1e-4, 0.02, TIMES)).cumprod(0).to(device)
    printed: list[str] = []
    kept: list[torch.Tensor] = []
    steps = 0

    def learn() -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, and how large the gradients were."""
        nonlocal steps
        fine = rain[steps % len(rain)]
        steps += 1
        coarse = F.interpolate(F.avg_pool2d(fine, 8), scale_factor=8.0, mode="bilinear")
        times = torch.randint(0, TIMES, (batch,), device=device)
        share = kept_share[times][:, None, None, None]
        noise = torch.randn_like(fine)
        noisy = share.sqrt() * fine + (1 - share).sqrt() * noise
        loss = F.mse_loss(net(torch.cat([noisy, coarse], 1), times), noise)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach(), norm

    def as_written() -> None:
        loss, norm = learn()
        average.update(net)
        printed.append(f"step {steps}: loss {loss.item():.4f}, gradient {norm.item():.3f}")

    def fixed() -> None:
        loss, norm = learn()
        average.update_unasked(net)
        kept.append(torch.stack([loss, norm]))
        if len(kept) == 50:
            lines = enumerate(torch.stack(kept).tolist(), steps - len(kept) + 1)
            printed.extend(f"step {at}: loss {one:.4f}, gradient {size:.3f}" for at, (one, size) in lines)
            kept.clear()

    return lambda written: as_written() if written else fixed()
