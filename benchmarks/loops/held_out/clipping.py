"""Gradients scaled to a norm that the host reads to decide, as Python `if` or as a clamp on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(2)
    width, batch = sized(device, 320), sized(device, 160)
    layers = [m for _ in range(3) for m in (torch.nn.Linear(width, width), torch.nn.Tanh())]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        total = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        if reads:
            norm = total.item()
            if norm > 1e-4:
                for p in net.parameters():
                    p.grad.mul_(1e-4 / norm)
        else:
            scale = (1e-4 / total).clamp(max=1.0)
            for p in net.parameters():
                p.grad.mul_(scale)
        work(8)
        optimizer.step()

    return run
