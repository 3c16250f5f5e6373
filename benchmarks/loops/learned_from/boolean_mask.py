"""A loss over the positions that a mask keeps, whose number only the device knows; without, weights of nought and one."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(1)
    width, inner, batch = sized(device, 256), sized(device, 512), sized(device, 256)
    net = torch.nn.Sequential(torch.nn.Linear(width, inner), torch.nn.ReLU(), torch.nn.Linear(inner, 16)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, 16).to(device)
    known = (torch.rand(batch, 16) < 0.6).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        out = net(x)
        if reads:
            loss = ((out[known] - y[known]) ** 2).mean()
        else:
            loss = torch.where(known, (out - y) ** 2, 0.0).sum() / known.sum()
        loss.backward()
        optimizer.step()
        work(6)

    return run
