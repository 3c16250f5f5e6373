"""An optimizer made by hand, whose ratio of each layer asks whether two norms are nought; without, a where chooses."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(77)
    width, batch, kinds = sized(device, 40), 2 * sized(device, 24), sized(device, 12)
    net = nn.Sequential(
        *[layer for _ in range(5) for layer in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())],
        nn.Linear(width, kinds),
    ).to(device)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, kinds, (batch,)).to(device)
    momenta = {p: torch.zeros_like(p) for p in net.parameters()}
    lr, momentum, decay, trust = 0.1, 0.9, 1e-4, 1e-3

    def lars(reads: bool) -> None:
        for p, buffer in momenta.items():
            weight_norm, grad_norm = torch.norm(p), torch.norm(p.grad)
            ratio = trust * weight_norm / (grad_norm + decay * weight_norm + 1e-9)
            if reads:
                local = ratio if weight_norm > 0 and grad_norm > 0 else 1.0
            else:
                local = torch.where((weight_norm > 0) & (grad_norm > 0), ratio, 1.0)
            buffer.mul_(momentum).add_(lr * local * (p.grad + decay * p))
            p.sub_(buffer)

    def run(reads: bool) -> None:
        net.zero_grad()
        functional.cross_entropy(net(x), y).backward()
        with torch.no_grad():
            lars(reads)

    return run
