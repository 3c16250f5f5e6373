"""Two signals are copied from ordinary memory every step; without, both from pinned memory and beside the work."""

from __future__ import annotations

from typing import Any

from loops import Step, work


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(20)
    gpu = device.type == "cuda"
    batch, length = (256, 8192) if gpu else (16, 512)
    net = nn.Sequential(nn.Linear(length, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    pairs = [(torch.randn(batch, length), torch.randn(batch, length)) for _ in range(3)]
    pinned = [tuple(t.pin_memory() for t in pair) for pair in pairs] if gpu else pairs
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        one, two = (t.to(device, non_blocking=not reads) for t in (pairs if reads else pinned)[count % 3])
        optimizer.zero_grad()
        (net(one) - net(two)).square().mean().backward()
        optimizer.step()
        work(1)

    return run
