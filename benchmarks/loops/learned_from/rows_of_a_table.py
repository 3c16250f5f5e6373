"""A table learnt in batches that are gathered on the host: three columns go up each time, losses come down for a bar."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    rows, batch, numbers, kinds, values, width, inner = (
        (60000, 8192, 96, 12, 1000, 24, 1024) if large else (4000, 256, 24, 6, 100, 8, 128)
    )
    columns = torch.randn(rows, numbers), torch.randint(0, values, (rows, kinds)), torch.rand(rows).round()
    known = nn.ModuleList(nn.Embedding(values, width) for _ in range(kinds)).to(device)
    body = nn.Sequential(
        nn.Linear(numbers + kinds * width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, 1)
    ).to(device)
    optimizer = torch.optim.AdamW([*known.parameters(), *body.parameters()], lr=1e-3)
    # pinned memory is written again three steps later, when its copy is over
    pinned, pageable = (
        [
            [torch.empty(batch, *column.shape[1:], dtype=column.dtype, pin_memory=pin) for column in columns]
            for _ in range(turns)
        ]
        for turns, pin in ((3, large), (1, False))
    )
    order = torch.randperm(rows)
    smooth: float | None = None
    count = 0

    def run(reads: bool) -> None:
        nonlocal count, smooth
        start = count * batch % (rows - batch)
        chosen = order[start : start + batch]
        count += 1
        staged = pageable[0] if reads else pinned[count % 3]
        for column, target in zip(columns, staged, strict=True):
            torch.index_select(column, 0, chosen, out=target)
        x, kind, y = (target.to(device, non_blocking=not reads) for target in staged)
        given = torch.cat([x, *(table(kind[:, number]) for number, table in enumerate(known))], 1)
        loss = functional.binary_cross_entropy_with_logits(body(given)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if reads:
            smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()

    return run
