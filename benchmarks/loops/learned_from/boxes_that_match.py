"""A detector's head sees the few anchors that overlap a box by half; without, all anchors, the others weighing nought."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(52)
    grid, channels, kinds = (64, 128, 400) if device.type == "cuda" else (10, 16, 40)
    backbone = nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
    ).to(device)
    head = nn.Sequential(nn.Linear(channels, 8 * channels), nn.ReLU(), nn.Linear(8 * channels, kinds)).to(device)
    regressor = nn.Linear(channels, 4).to(device)
    parameters = [*backbone.parameters(), *head.parameters(), *regressor.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4)
    images = torch.rand(4, 3, 2 * grid, 2 * grid).to(device)
    y, x = torch.meshgrid(torch.arange(grid) + 0.5, torch.arange(grid) + 0.5, indexing="ij")
    centers = torch.stack([x, y], -1).reshape(-1, 2)
    anchors = torch.cat([centers - 1.5, centers + 1.5], 1).to(device)
    corners = torch.rand(3, 4, 6, 2) * (grid - 4)
    boxes = torch.cat([corners, corners + 2.5 + torch.rand(3, 4, 6, 2)], -1).to(device)
    labels = torch.randint(0, kinds, (3, 4, 6)).to(device)
    count = 0

    def overlap(found: Any) -> Any:
        low = torch.maximum(anchors[None, :, None, :2], found[:, None, :, :2])
        high = torch.minimum(anchors[None, :, None, 2:], found[:, None, :, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        areas = (found[..., 2:] - found[..., :2]).prod(-1)
        return shared / (9.0 + areas[:, None] - shared)

    def run(reads: bool) -> None:
        nonlocal count
        target, label = boxes[count % 3], labels[count % 3]
        count += 1
        features = backbone(images).flatten(2).transpose(1, 2)
        best, which = overlap(target).max(2)
        positive = best > 0.45
        matched = torch.gather(target, 1, which[..., None].expand(-1, -1, 4))
        offsets, classes = matched - anchors, torch.gather(label, 1, which)
        if reads:
            chosen = features[positive]
            loss = functional.cross_entropy(head(chosen), classes[positive])
            loss = loss + functional.smooth_l1_loss(regressor(chosen), offsets[positive])
        else:
            found = head(features).transpose(1, 2)
            loss = functional.cross_entropy(found, classes.masked_fill(~positive, -100), ignore_index=-100)
            off = functional.smooth_l1_loss(regressor(features), offsets, reduction="none").mean(-1)
            loss = loss + (off * positive).sum() / positive.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
