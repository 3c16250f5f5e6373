"""Norms of a network's gradients by name, read in a comprehension of a dict: read at once, by one stack."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    width = sized(device, 96)
    layers = [torch.nn.Linear(width, width) for _ in range(6)]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(width, width).to(device)
    noted = []

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        norms = {name: p.grad.norm() for name, p in net.named_parameters()}
        if reads:
            noted.append({name: norm.item() for name, norm in norms.items()})
        else:
            noted.append(dict(zip(norms, torch.stack(list(norms.values())).tolist(), strict=True)))
        optimizer.step()

    return run
