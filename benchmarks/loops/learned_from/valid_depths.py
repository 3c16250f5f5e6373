"""Depth is learned where the sensor saw something, nine pixels of ten; without, the others weigh nought."""

from __future__ import annotations

from typing import Any

from loops import Step, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(33)
    side, channels = (16, 8) if device.type == "ocl" else (128, 32)
    net = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
        nn.Conv2d(channels, 1, 3, padding=1),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    images, depth = torch.randn(8, 3, side, side).to(device), torch.rand(8, 1, side, side).to(device)
    seen = [(torch.rand(8, 1, side, side) < 0.9).to(device) for _ in range(3)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        valid = seen[count % 3]
        predicted = net(images)
        if reads:
            loss = functional.smooth_l1_loss(predicted[valid], depth[valid])
        else:
            each = functional.smooth_l1_loss(predicted, depth, reduction="none")
            loss = (each * valid).sum() / valid.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        work(2)

    return run
