"""Advertisements are judged by a table whose columns, a dict of tensors, are each copied with .to(device); without, pinned."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(72)
    rows, width, categories, levels = sized(device, 16) ** 2, sized(device, 8), 26, 1000
    tables = nn.Embedding(categories * levels, 16).to(device)
    bottom = nn.Sequential(nn.Linear(13, width), nn.ReLU(), nn.Linear(width, 16), nn.ReLU()).to(device)
    top = nn.Sequential(nn.Linear(16 * (categories + 1), 4 * width), nn.ReLU(), nn.Linear(4 * width, 1)).to(device)
    optimizer = torch.optim.Adam([*tables.parameters(), *bottom.parameters(), *top.parameters()], lr=1e-3)
    offsets = (torch.arange(categories) * levels).to(device)

    def batch() -> dict[str, Any]:
        return {
            "dense": torch.rand(rows, 13).mul_(100).log1p_(),
            "category": torch.randint(0, levels, (rows, categories)),
            "weight": torch.rand(rows),
            "label": (torch.rand(rows) < 0.25).float(),
        }

    batches = [batch() for _ in range(4)]
    pinned = [{k: v.pin_memory() for k, v in one.items()} for one in batches] if device.type == "cuda" else batches
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        found = (batches if reads else pinned)[count % 4]
        count += 1
        found = {k: v.to(device, non_blocking=not reads) for k, v in found.items()}
        known = tables(found["category"] + offsets).flatten(1)
        logit = top(torch.cat([bottom(found["dense"]), known], 1)).squeeze(1)
        loss = functional.binary_cross_entropy_with_logits(logit, found["label"], weight=found["weight"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
