"""What the loops have in common: a step of training on one batch, and a step as a graph of the device's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

Step = Callable[[], object]
Make = Callable[[torch.device, bool], Step]
Batch = tuple[torch.Tensor, torch.Tensor]


class Changed(NamedTuple):
    """A loop in two versions."""

    change: str
    row: str  # a part of the name of the row of `what_if` that is about it
    make: Make  # as written (False), or changed


def trained(optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor], to_none: bool = True) -> Step:
    """A step of training on the loss that a call gives."""

    def step() -> object:
        optimizer.zero_grad(set_to_none=to_none)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def supervised(
    net: nn.Module, optimizer: torch.optim.Optimizer, batch: Callable[[], Batch], to_none: bool = True
) -> Step:
    """A step of training on what `batch` gives."""

    def loss_of() -> torch.Tensor:
        inputs, targets = batch()
        return F.cross_entropy(net(inputs), targets)

    return trained(optimizer, loss_of, to_none)


def images(device: torch.device, count: int, side: int, classes: int) -> Callable[[], Batch]:
    """The same batch of random pictures each time."""
    made = torch.randn(count, 3, side, side, device=device), torch.randint(0, classes, (count,), device=device)
    return lambda: made


def captured(step: Step, device: torch.device) -> Step:
    """The step as a graph of the device's."""
    if device.type == "ocl":
        again: Step = torch.ocl.capture(step).replay
        return again
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay() -> object:
        graph.replay()
        return step  # and what it works on stays where it is

    return replay
