"""Images lie in ordinary memory and are copied while the host waits; without, in pinned memory and beside the work."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(10)
    batch, side, planes = (64, 128, 48) if device.type == "cuda" else (8, 48, 8)
    net = nn.Sequential(
        nn.Conv2d(3, planes, 3, stride=2), nn.ReLU(), nn.Conv2d(planes, planes, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(planes, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    images = [torch.randn(batch, 3, side, side) for _ in range(4)]
    pinned = [image.pin_memory() for image in images] if device.type == "cuda" else images
    labels = torch.randint(0, 10, (batch,)).to(device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        if reads:
            x = images[count % 4].to(device)
        else:
            x = pinned[count % 4].to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()

    return run
