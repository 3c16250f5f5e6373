"""Losses of eight parts of a batch, read as a list when all are launched: `torch.stack(...).tolist()`."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    width = sized(device, 96)
    net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)).to(device)
    parts = [torch.randn(width, width).to(device) for _ in range(8)]

    def run(reads: bool) -> None:
        with torch.no_grad():
            losses = [net(part).square().mean() for part in parts]
        if reads:
            values = [loss.item() for loss in losses]
        else:
            values = torch.stack(losses).tolist()
        work(0.5 if values else 0.0)

    return run
