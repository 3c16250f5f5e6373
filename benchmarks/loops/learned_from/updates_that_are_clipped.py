"""Each parameter's update is shortened where its norm is over a limit, and the host asks each; without, a clamp does it."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(98)
    batch, width = 2 * sized(device, 24), sized(device, 40)
    net = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU())]).to(device)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)
    lr, limit = 0.05, 0.01

    def run(reads: bool) -> None:
        net.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        with torch.no_grad():
            for p in net.parameters():
                norm = p.grad.norm()
                if not reads:
                    p.sub_(p.grad * (limit / (norm + 1e-6)).clamp(max=1.0) * lr)
                elif (size := norm.item()) > limit:
                    p.sub_(p.grad, alpha=lr * limit / size)
                else:
                    p.sub_(p.grad, alpha=lr)

    return run
