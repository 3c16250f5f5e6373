"""A generator and a critic whose losses are noted, one after the other: `torch.stack` reads both at once."""

from __future__ import annotations

from typing import Any

from loops import Step, linear_step


def loop(torch: Any, device: Any) -> Step:
    paint, judge = linear_step(torch, device, 96, 4, 96), linear_step(torch, device, 64, 3, 64)
    noted = []

    def run(reads: bool) -> None:
        first = paint()
        second = judge()
        if reads:
            a = first.item()
            b = second.item()
        else:
            a, b = torch.stack((first, second)).tolist()
        noted.append((a, b))

    return run
