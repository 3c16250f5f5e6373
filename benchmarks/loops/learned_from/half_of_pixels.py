"""The loss of an autoencoder over the half of its pixels that were hidden, by masked_select; without, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(21)
    pixels, inner, batch = sized(device, 256), sized(device, 96), sized(device, 64)
    net = nn.Sequential(
        nn.Linear(pixels, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, pixels)
    ).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    images = torch.rand(batch, pixels).to(device)
    hidden = (torch.rand(batch, pixels) < 0.5).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        found = net(images.masked_fill(hidden, 0.0))
        if reads:
            loss = (found.masked_select(hidden) - images.masked_select(hidden)).abs().mean()
        else:
            loss = torch.where(hidden, (found - images).abs(), 0.0).sum() / hidden.sum()
        loss.backward()
        optimizer.step()
        work(2)

    return run
