"""What the ground is made of, by its echoes: a wave of 200 moments, whose step in time and whose values are checked as it goes.

Fixed: how fast a wave may be is known from how the ground is made; one flag, read once in 25 steps, says whether all is finite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

SLOW, FAST = 1500.0, 4500.0  # m/s
APART, MOMENT, PITCH = 10.0, 1e-3, 12.0  # m, s, Hz
CHECKED, ROW = 50, 3  # moments, and how deep the geophones lie


def burst(moments: int) -> torch.Tensor:
    """What a source does over time (Ricker)."""
    phase = (torch.pi * PITCH * (MOMENT * torch.arange(moments) - 1 / PITCH)) ** 2
    return (1 - 2 * phase) * torch.exp(-phase)


class Survey(NamedTuple):
    """Where the ground is shaken, how, and what takes a wave away at both edges."""

    sources: torch.Tensor
    pushes: torch.Tensor
    fades: torch.Tensor
    about: torch.Tensor  # a point and its four neighbours (Laplace)


def heard(speed: torch.Tensor, survey: Survey, checks: bool) -> torch.Tensor:
    """What a row of geophones hears of each shot."""
    if checks and speed.max().item() * MOMENT / APART > 0.7:
        raise ValueError("the wave runs further in a moment than from point to point")
    far = (speed * MOMENT / APART).square()
    before = wave = torch.zeros_like(survey.sources)
    echoes = []
    for moment, push in enumerate(survey.pushes):
        after = 2 * wave - before + far * F.conv2d(wave, survey.about, padding=1)
        before, wave = survey.fades * wave, survey.fades * (after + push * survey.sources)
        echoes.append(wave[:, 0, ROW])
        if checks and moment % CHECKED == CHECKED - 1 and not torch.isfinite(wave).all():
            raise FloatingPointError(f"the wave is lost at moment {moment}")
    return torch.stack(echoes, 1)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    shots, deep, wide, moments = (4, 100, 200, 200) if device.type == "cuda" else (2, 10, 12, 12)
    about = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])[None, None]
    sources = torch.zeros(shots, 1, deep, wide)
    for shot in range(shots):
        sources[shot, 0, 2, (2 * shot + 1) * wide // (2 * shots)] = 1.0
    edge = torch.minimum(torch.arange(wide), torch.arange(wide).flip(0)).clamp(max=20)
    fades = torch.exp(-((0.015 * (20 - edge)) ** 2)).expand(deep, wide)
    survey = Survey(*(one.to(device) for one in (sources, burst(moments), fades, about)))
    layers = torch.linspace(0, 1, deep)[:, None] + 0.1 * torch.randn(deep, wide)
    true = (SLOW + (FAST - SLOW) * layers.clamp(0, 1)).to(device)
    ground = nn.Parameter(torch.linspace(-2, 2, deep)[:, None].expand(deep, wide).contiguous().to(device))
    optimizer = torch.optim.Adam([ground], lr=1e-2)
    with torch.no_grad():
        echoes = heard(true, survey, checks=True)
    log: list[tuple[float, float]] = []
    kept: list[torch.Tensor] = []

    def learn(checks: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The misfit, and how far the ground is from what it is."""
        speed = SLOW + (FAST - SLOW) * torch.sigmoid(ground)
        misfit = F.mse_loss(heard(speed, survey, checks), echoes)
        optimizer.zero_grad()
        misfit.backward()
        with torch.no_grad():
            assert ground.grad is not None
            ground.grad /= ground.grad.abs().max()
        optimizer.step()
        return misfit.detach(), (speed.detach() - true).abs().mean()

    def as_written() -> None:
        misfit, off = learn(checks=True)
        log.append((misfit.item(), off.item()))

    def fixed() -> None:
        misfit, off = learn(checks=False)
        kept.append(torch.stack([misfit, off, torch.isfinite(misfit).to(off.dtype)]))
        if len(kept) == 25:
            for number, far, finite in torch.stack(kept).tolist():
                if not finite:
                    raise FloatingPointError("the wave is lost")
                log.append((number, far))
            kept.clear()

    return lambda written: as_written() if written else fixed()
