"""Small kernels, much Python: the device waits for the host."""

from __future__ import annotations

from typing import Any

from loops import Step, linear_step, work


def loop(torch: Any, device: Any) -> Step:
    step = linear_step(torch, device, 64, 2, 16)

    def run(reads: bool) -> None:
        loss = step()
        if reads:
            loss.item()
        work(12)

    return run
