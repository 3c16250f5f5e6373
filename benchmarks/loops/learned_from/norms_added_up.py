"""The norm of all gradients is added up in Python, number by number, and decides about scaling; without, on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(56)
    width, batch, kinds = sized(device, 48), sized(device, 32), sized(device, 10)
    net = nn.Sequential(
        *[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())],
        nn.Linear(width, kinds),
    ).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, kinds, (batch,)).to(device)
    largest = 0.5

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        functional.cross_entropy(net(x), y, label_smoothing=0.1).backward()
        parameters = [p for p in net.parameters() if p.grad is not None]
        if reads:
            total = 0.0
            for p in parameters:
                total += p.grad.data.norm(2).item() ** 2
            total = total**0.5
            scale = largest / (total + 1e-6)
            if scale < 1:
                for p in parameters:
                    p.grad.data.mul_(scale)
        else:
            norm = torch.stack([p.grad.norm(2) for p in parameters]).norm(2)
            factor = (largest / (norm + 1e-6)).clamp(max=1)
            for p in parameters:
                p.grad.mul_(factor)
        optimizer.step()

    return run
