"""An update is skipped where the loss or the norm of the gradient is too large, as an `if` asks; without, it never is."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(49)
    width, batch = sized(device, 64), sized(device, 40)
    net = nn.Sequential(
        nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(batch, width).to(device)
    skipped = 0

    def run(reads: bool) -> None:
        nonlocal skipped
        loss = (net(x) - x).square().mean()
        bad = ~torch.isfinite(loss)
        if reads and bad:
            skipped += 1
            return
        optimizer.zero_grad()
        loss.backward()
        wild = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0) > 1e4
        if reads and wild:
            skipped += 1
            return
        optimizer.step()

    return run
