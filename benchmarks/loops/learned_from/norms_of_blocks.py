"""The norm of every gradient and of every weight of a deep network goes into a table of numbers; without, of tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(46)
    width, batch = sized(device, 40), sized(device, 24)
    blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU()) for _ in range(6)]
    net = nn.Sequential(*blocks, nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, 1).to(device)
    table: dict[str, Any] = {}

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        functional.smooth_l1_loss(net(x), y).backward()
        for name, weight in net.named_parameters():
            norms = weight.grad.norm(), weight.detach().norm()
            table[name] = tuple(float(norm) for norm in norms) if reads else norms
        optimizer.step()

    return run
