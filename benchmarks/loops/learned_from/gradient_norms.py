"""The norm of each gradient is logged, one `.item()` after the other."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    width, batch = sized(device, 192), sized(device, 64)
    layers = [m for _ in range(12) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(batch, width).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        norms = [p.grad.norm() for p in net.parameters()]
        if reads:
            [norm.item() for norm in norms]
        optimizer.step()

    return run
