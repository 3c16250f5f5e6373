"""Only the rows of two tables that a batch names, by unique(), are learnt (Adagrad by hand); without, all, mostly by nought."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, users, items, width, inner, clicks = (
        (4096, 50000, 20000, 64, 512, 8) if large else (64, 1500, 900, 24, 64, 4)
    )
    tables = [(torch.randn(rows, width) * 0.1).to(device) for rows in (users, items)]
    squares = [torch.full_like(table, 0.1) for table in tables]
    head = nn.Sequential(nn.Linear(2 * width, inner), nn.ReLU(), nn.Linear(inner, 1)).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    batches = []
    for _ in range(6):  # some are popular
        user, item = (torch.rand(batch) ** 2 * users).long(), (torch.rand(batch, clicks) ** 3 * items).long()
        batches.append([part.to(device) for part in (user[:, None], item, torch.rand(batch).round())])
    shown: list[Any] = []
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        *named, liked = batches[count % len(batches)]
        count += 1
        touched, leaves, pooled = [], [], []
        for table, ids in zip(tables, named, strict=True):
            if reads:
                rows, ids = ids.unique(return_inverse=True)
                touched.append(rows)
                leaves.append(table[rows].requires_grad_())
            else:
                leaves.append(table.detach().requires_grad_())
            pooled.append(functional.embedding(ids, leaves[-1]).mean(1))
        loss = functional.binary_cross_entropy_with_logits(head(torch.cat(pooled, 1))[:, 0], liked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for number, (table, square, leaf) in enumerate(zip(tables, squares, leaves, strict=True)):
                slope = leaf.grad
                if reads:
                    rows = touched[number]
                    square.index_add_(0, rows, slope.square())
                    table.index_add_(0, rows, slope / square[rows].sqrt(), alpha=-0.01)
                else:
                    square.add_(slope.square())
                    table.add_(slope / square.sqrt(), alpha=-0.01)
        shown.append(loss.item() if reads else loss.detach())
        del shown[:-20]

    return run
