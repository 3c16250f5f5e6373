"""Organs are outlined in scans, a volume and its labels copied from ordinary memory a step; without, from pinned memory."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(71)
    side, channels, organs = sized(device, 12), sized(device, 2), 5
    down = nn.Sequential(
        nn.Conv3d(1, channels, 3, stride=2, padding=1),
        nn.InstanceNorm3d(channels),
        nn.LeakyReLU(),
        nn.Conv3d(channels, 2 * channels, 3, padding=1),
        nn.LeakyReLU(),
    ).to(device)
    up = nn.ConvTranspose3d(2 * channels, organs, 2, stride=2).to(device)
    optimizer = torch.optim.SGD([*down.parameters(), *up.parameters()], lr=1e-2, momentum=0.99, nesterov=True)
    scans = [(torch.randn(2, 1, side, side, side), torch.randint(0, organs, (2, side, side, side))) for _ in range(4)]
    pinned = [(x.pin_memory(), y.pin_memory()) for x, y in scans] if device.type == "cuda" else scans
    count = 0

    def dice(found: Any, outline: Any) -> Any:
        chance = found.softmax(1)
        shared = chance.gather(1, outline[:, None]).mean()
        return 1 - 2 * shared / (chance.square().sum(1).mean() + 1)

    def run(reads: bool) -> None:
        nonlocal count
        scan, outline = (scans if reads else pinned)[count % 4]
        count += 1
        scan = scan.to(device, non_blocking=not reads)
        outline = outline.to(device, non_blocking=not reads)
        found = up(down(scan))
        loss = functional.cross_entropy(found, outline) + dice(found, outline)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return run
