"""Six reads in a step, between its parts."""

from __future__ import annotations

from typing import Any

from loops import Step, linear_step, work


def loop(torch: Any, device: Any) -> Step:
    step = linear_step(torch, device, 384, 1, 128)

    def run(reads: bool) -> None:
        for _ in range(6):
            loss = step()
            if reads:
                loss.item()
            work(2)

    return run
