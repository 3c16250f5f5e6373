"""Diffusion: images and times go up; losses come down to be logged by quarters of time, and each gradient's square."""

from __future__ import annotations

import math
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    import numpy as np

    nn = torch.nn
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    large = device.type == "cuda"
    batch, side, channels, times = (32, 96, 48, 1000) if large else (4, 16, 12, 1000)
    network = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(channels, 3, 3, padding=1),
    ).to(device)
    parameters = list(network.parameters())
    means = [p.detach().clone() for p in parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    left = torch.linspace(0.999, 0.01, times).to(device)
    images = [torch.randn(batch, 3, side, side) for _ in range(3)]
    pinned = [image.pin_memory() if large else image for image in images]
    noise = torch.randn(batch, 3, side, side).to(device)
    logged: dict[str, float] = {}
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        drawn = torch.from_numpy(random.choice(times, batch))
        if reads:
            x, t = images[count % 3].to(device), drawn.to(device)
        else:
            t = drawn.pin_memory() if large else drawn
            x, t = pinned[count % 3].to(device, non_blocking=True), t.to(device, non_blocking=True)
        keep = left[t].view(-1, 1, 1, 1)
        losses = ((network(keep.sqrt() * x + (1 - keep).sqrt() * noise) - noise) ** 2).mean((1, 2, 3))
        optimizer.zero_grad()
        losses.mean().backward()
        if reads:
            for time, loss in zip(t.cpu().numpy(), losses.detach().cpu().numpy(), strict=True):
                logged[f"loss of quarter {4 * int(time) // times}"] = float(loss)
            square = 0.0
            for p in parameters:
                square += (p.grad**2).sum().item()
            logged["norm"] = math.sqrt(square)
        else:
            for time in drawn.numpy():
                logged[f"loss of quarter {4 * int(time) // times}"] = 0.0
            torch.stack([(p.grad**2).sum() for p in parameters]).sum().sqrt()
        optimizer.step()
        with torch.no_grad():
            for average, p in zip(means, parameters, strict=True):
                average.mul_(0.999).add_(p, alpha=0.001)

    return run
