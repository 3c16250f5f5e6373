"""Eight counters of a confusion matrix are read as lists every step for a progress bar; without, they add up on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(22)
    width, batch, classes = sized(device, 128), sized(device, 128), 4
    net = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, classes, (batch,)).to(device)
    totals = torch.zeros(classes, 2).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        out = net(x)
        nn.functional.cross_entropy(out, y).backward()
        optimizer.step()
        best = out.argmax(1)
        for number in range(classes):
            mine, said = y == number, best == number
            counts = torch.stack(((mine & said).sum(), mine.sum())).float()
            if reads:
                counts.tolist()
            else:
                totals[number].add_(counts)

    return run
