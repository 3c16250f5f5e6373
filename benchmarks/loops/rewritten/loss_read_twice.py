"""A loss that is printed and kept, read for each: read once, it has a name."""

from __future__ import annotations

from typing import Any

from loops import Step, linear_step, work


def loop(torch: Any, device: Any) -> Step:
    step = linear_step(torch, device, 96, 4, 128)
    noted, best = [], [1e9]

    def run(reads: bool) -> None:
        loss = step()
        if reads:
            noted.append(loss.item())
            best[0] = min(best[0], loss.item())
        else:
            value = loss.item()
            noted.append(value)
            best[0] = min(best[0], value)
        work(0.5)

    return run
