"""Spectra of sounds go from ordinary memory to the device one batch a step; without, from pinned memory beside the work."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(41)
    bands, frames, batch, channels = 64, sized(device, 16), sized(device, 6), sized(device, 4)
    net = nn.Sequential(
        nn.Conv2d(1, channels, 5, stride=2),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2),
        nn.BatchNorm2d(2 * channels),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 50),
    ).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sounds = [torch.randn(batch, 1, bands, frames) for _ in range(5)]
    kinds = [torch.randint(0, 50, (batch,)).to(device) for _ in range(5)]
    pinned = [sound.pin_memory() for sound in sounds] if device.type == "cuda" else sounds
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        which = count % 5
        x = sounds[which].to(device) if reads else pinned[which].to(device, non_blocking=True)
        loss = functional.cross_entropy(net(x), kinds[which])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
