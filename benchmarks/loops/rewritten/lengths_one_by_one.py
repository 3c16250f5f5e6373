"""Lengths on the device, one of them read in each pass of a loop that launches: all are read before it."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    width = sized(device, 96)
    net = torch.nn.Linear(width, width).to(device)
    x = torch.randn(8, width, width).to(device)
    lengths = torch.full((8,), width // 2).to(device)
    kept = []

    def run(reads: bool) -> None:
        with torch.no_grad():
            done = (lengths + 0).clamp(min=1)
            if not reads:
                known = done.tolist()
            for i in range(8):
                n = done[i].item() if reads else known[i]
                kept.append(net(x[i, :n]).mean())
                work(0.1)
        del kept[:]

    return run
