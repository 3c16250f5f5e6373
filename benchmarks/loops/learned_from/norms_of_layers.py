"""The norm of every weight's gradient goes into a dict, and the largest decides about a warning; without, nothing is read."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(15)
    width, batch = sized(device, 128), sized(device, 48)
    layers = [m for _ in range(8) for m in (nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())]
    net = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        norms = {name: p.grad.norm() for name, p in net.named_parameters()}
        if reads:
            read = {name: norm.item() for name, norm in norms.items()}
            if max(read.values()) > 1e9:
                print("large")
        optimizer.step()

    return run
