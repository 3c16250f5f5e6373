"""Training loops for `prediction.py`, one a file: `loop(torch, device)` makes it.

What it returns makes a step: as written (True), or without its waits (False). The table of intervals is learned from those in
`learned_from`, and never from those in `held_out`; in `rewritten` the other version is the linter's rewrite. In which order
they were written, and so which of them the model had not seen when it was made, `sets.md` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Step = Callable[[bool], None]
TIMES = {"cuda": 8}  # so much larger are the tensors' sides: a GPU does in 1 us what a processor does in 1 ms


def sized(device: Any, side: int) -> int:
    """The side of a tensor, so that this device has about as much to do as the host."""
    return side * TIMES.get(device.type, 1)


def work(ms: float) -> None:
    """The host has something else to do: it waits for the next batch, as of a loader's worker or a disk."""
    time.sleep(ms / 1000)


def linear_step(torch: Any, device: Any, width: int, depth: int, batch: int) -> Callable[[], Any]:
    """One SGD step of a plain network; returns its loss."""
    torch.manual_seed(0)
    width, batch = sized(device, width), sized(device, batch)
    layers = [m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step
