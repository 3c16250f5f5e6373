"""Contrast with a queue of keys, whose end is a number on the device; a slow copy of the encoder makes them; three meters."""

from __future__ import annotations

import copy
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, side, channels, width, keys = (128, 64, 48, 128, 16384) if large else (8, 16, 8, 32, 256)
    online = nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.BatchNorm2d(2 * channels),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * channels * (side // 4) ** 2, width),
    ).to(device)
    slow = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    queue = functional.normalize(torch.randn(width, keys), dim=0).to(device)
    pointer = torch.zeros(1, dtype=torch.long, device=device)
    views = [torch.randn(2, batch, 3, side, side).to(device) for _ in range(3)]
    target = torch.zeros(batch, dtype=torch.long, device=device)
    meters: dict[str, list[Any]] = {name: [] for name in ("loss", "top1", "top5")}
    end = count = 0

    def run(reads: bool) -> None:
        nonlocal count, end
        first, second = views[count % len(views)]
        count += 1
        asked = functional.normalize(online(first), dim=1)
        with torch.no_grad():
            for old, new in zip(slow.parameters(), online.parameters(), strict=True):
                old.mul_(0.999).add_(new, alpha=0.001)
            known = functional.normalize(slow(second), dim=1)
        alike = (asked * known).sum(1, keepdim=True)
        logits = torch.cat([alike, asked @ queue.clone()], 1) / 0.07
        with torch.no_grad():
            start = int(pointer) if reads else end
            queue[:, start : start + batch] = known.T
            end = (start + batch) % keys
            pointer[0] = end
        loss = functional.cross_entropy(logits, target)
        with torch.no_grad():
            right = (logits.topk(5).indices == target[:, None]).float()
            told = {"loss": loss.detach(), "top1": 100 * right[:, 0].mean(), "top5": 100 * right.sum(1).mean()}
        for name, value in told.items():
            meters[name].append(value.item() if reads else value)
            del meters[name][:-20]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
