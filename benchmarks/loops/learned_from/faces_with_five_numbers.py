"""A GAN that puts five numbers of every step into its log, as PyTorch's example does.

Fixed: the log has one line in fifty steps, and the numbers are read there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width = (128, 64) if device.type == "cuda" else (8, 6)
    maker = nn.Sequential(
        nn.Linear(32, 4 * width * 16), nn.Unflatten(1, (4 * width, 4, 4)), nn.ReLU(), nn.Upsample(scale_factor=2),
        nn.Conv2d(4 * width, 2 * width, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2),
        nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 3, 3, padding=1), nn.Tanh(),
    ).to(device)  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(2 * width * 16, 1),
    ).to(device)  # fmt: skip
    first = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = torch.rand(batch, 3, 16, 16).to(device) * 2 - 1
    ones, zeros = torch.ones(batch, device=device), torch.zeros(batch, device=device)
    log: list[tuple[float, ...]] = []
    steps = 0

    def as_written() -> None:
        judge.zero_grad()
        output = judge(real).view(-1)
        wrong_real = F.binary_cross_entropy_with_logits(output, ones)
        wrong_real.backward()
        d_x = output.mean().item()
        fake = maker(torch.randn(batch, 32, device=device))
        output = judge(fake.detach()).view(-1)
        wrong_fake = F.binary_cross_entropy_with_logits(output, zeros)
        wrong_fake.backward()
        d_g_z1 = output.mean().item()
        wrong = wrong_real + wrong_fake
        first.step()
        maker.zero_grad()
        output = judge(fake).view(-1)
        found = F.binary_cross_entropy_with_logits(output, ones)
        found.backward()
        d_g_z2 = output.mean().item()
        second.step()
        log.append((wrong.item(), found.item(), d_x, d_g_z1, d_g_z2))

    def fixed() -> None:
        nonlocal steps
        judge.zero_grad()
        output = judge(real).view(-1)
        wrong_real = F.binary_cross_entropy_with_logits(output, ones)
        wrong_real.backward()
        d_x = output.mean()
        fake = maker(torch.randn(batch, 32, device=device))
        output = judge(fake.detach()).view(-1)
        wrong_fake = F.binary_cross_entropy_with_logits(output, zeros)
        wrong_fake.backward()
        d_g_z1 = output.mean()
        wrong = wrong_real + wrong_fake
        first.step()
        maker.zero_grad()
        output = judge(fake).view(-1)
        found = F.binary_cross_entropy_with_logits(output, ones)
        found.backward()
        d_g_z2 = output.mean()
        second.step()
        steps += 1
        if steps % 50 == 0:
            log.append(tuple(torch.stack([wrong, found, d_x, d_g_z1, d_g_z2]).tolist()))

    return lambda written: as_written() if written else fixed()
