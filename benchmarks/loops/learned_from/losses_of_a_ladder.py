"""Six losses of a ladder of networks are read one by one, as numbers that weigh the next; without, they stay tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(24)
    width, batch = sized(device, 192), sized(device, 96)
    nets = [nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)).to(device) for _ in range(6)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=1e-4) for net in nets]
    x = torch.randn(batch, width).to(device)

    def run(reads: bool) -> None:
        weight: Any = 1.0
        for net, optimizer in zip(nets, optimizers, strict=True):
            optimizer.zero_grad()
            loss = weight * (net(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            weight = 1.0 / (1.0 + loss.item()) if reads else 1.0 / (1.0 + loss.detach())

    return run
