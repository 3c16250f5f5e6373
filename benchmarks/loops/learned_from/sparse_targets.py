"""A table scored against few positive targets of each row, found by nonzero(); without, all are scored and weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(17)
    items, width, batch = sized(device, 400), sized(device, 32), sized(device, 48)
    table = nn.Embedding(items, width).to(device)
    tower = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).to(device)
    optimizer = torch.optim.SGD([*table.parameters(), *tower.parameters()], lr=1e-2)
    users = torch.randn(batch, width).to(device)
    wanted = (torch.rand(batch, items) < 0.02).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        scores = tower(users) @ table.weight.t()
        if reads:
            row, item = wanted.nonzero(as_tuple=True)
            loss = functional.softplus(-scores[row, item]).mean()
        else:
            loss = torch.where(wanted, functional.softplus(-scores), 0.0).sum() / wanted.sum()
        loss.backward()
        optimizer.step()
        work(2)

    return run
