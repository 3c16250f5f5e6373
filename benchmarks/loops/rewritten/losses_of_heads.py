"""Eight heads whose losses are added up as numbers, each read as soon as it is there: added up on the device, read once."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    width = sized(device, 96)
    heads = [torch.nn.Linear(width, width).to(device) for _ in range(8)]
    x, y = torch.randn(width, width).to(device), torch.randn(width, width).to(device)
    noted = []

    def run(reads: bool) -> None:
        total: Any = 0.0
        for head in heads:
            loss = torch.nn.functional.mse_loss(head(x), y)
            if reads:
                total += loss.item()
            else:
                total = total + loss.detach()
            work(0.2)
        noted.append(total if reads else total.item())

    return run
