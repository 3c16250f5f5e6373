"""Batches in pageable memory; in pinned memory, from which the host does not wait for the copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import nn

from changed_loops.steps import Batch, Changed, Step, supervised


def held(device: torch.device, batches: list[Batch], pinned: bool) -> Callable[[], Batch]:
    """One after the other, copied to the device."""
    if pinned:
        batches = [(inputs.pin_memory(), labels.pin_memory()) for inputs, labels in batches]
    again = itertools.cycle(batches)

    def batch() -> Batch:
        inputs, labels = next(again)
        return inputs.to(device, non_blocking=pinned), labels.to(device, non_blocking=pinned)

    return batch


def uploads(device: torch.device, changed: bool) -> Step:
    """A network of convolutions on large pictures."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 3, 2, 1)),
        *(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)),
    ).to(device)
    batches = [(torch.randn(128, 3, 224, 224), torch.randint(0, 10, (128,))) for _ in range(3)]
    return supervised(net, torch.optim.SGD(net.parameters(), lr=0.01), held(device, batches, changed))


def imagenet(device: torch.device, changed: bool) -> Step:
    """The examples' `imagenet` without `pin_memory`: ResNet-18, SGD with momentum."""
    from torchvision.models import resnet18

    net = resnet18().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    batches = [(torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))) for _ in range(3)]
    return supervised(net, optimizer, held(device, batches, changed))


ROW = "pinned and asynchronous"
LOOPS = {
    "convolutions, uploads": Changed("pinned", ROW, uploads),
    "imagenet, uploads": Changed("pinned", ROW, imagenet),
}
