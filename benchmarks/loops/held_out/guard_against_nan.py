"""A step is skipped where its loss is no number, and a running mean of the loss is kept on the host; without, on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(18)
    width, batch = sized(device, 320), sized(device, 128)
    net = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)).to(
        device
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, 1).to(device)
    running, mean = torch.zeros(()).to(device), 0.0

    def run(reads: bool) -> None:
        nonlocal mean
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(net(x), y)
        if reads and torch.isnan(loss):
            return
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if reads:
            mean = 0.9 * mean + 0.1 * loss.item()
        else:
            running.mul_(0.9).add_(loss.detach(), alpha=0.1)
        work(2)

    return run
