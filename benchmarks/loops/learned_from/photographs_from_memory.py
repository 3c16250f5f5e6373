"""Patches of two photographs are made sharp again, both sizes copied from ordinary memory; without, from pinned memory."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    from sklearn.datasets import load_sample_images

    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(51)
    side, batch, channels = sized(device, 24), sized(device, 4), sized(device, 4)
    photographs = [torch.tensor(image).permute(2, 0, 1) / 255 for image in load_sample_images().images]
    net = nn.Sequential(
        nn.Conv2d(3, channels, 5, padding=2),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, 12, 3, padding=1),
        nn.PixelShuffle(2),
    ).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def patch() -> Any:
        image = photographs[int(torch.randint(2, ()))]
        top = int(torch.randint(image.shape[1] - side, ()))
        left = int(torch.randint(image.shape[2] - side, ()))
        return image[:, top : top + side, left : left + side]

    sharp = [torch.stack([patch() for _ in range(batch)]) for _ in range(6)]
    coarse = [functional.avg_pool2d(patches, 2) for patches in sharp]
    batches = list(zip(coarse, sharp, strict=True))
    pinned = [(x.pin_memory(), y.pin_memory()) for x, y in batches] if device.type == "cuda" else batches
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x, y = (batches if reads else pinned)[count % 6]
        count += 1
        x, y = x.to(device, non_blocking=not reads), y.to(device, non_blocking=not reads)
        loss = functional.l1_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
