"""Embeddings of users and items, scored where somebody clicked, one pair of fifty; without, everywhere, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(38)
    users, items, width = sized(device, 64), sized(device, 96), sized(device, 24)
    user_table, item_table = nn.Embedding(users, width).to(device), nn.Embedding(items, width).to(device)
    mix = nn.Linear(width, width).to(device)
    optimizer = torch.optim.Adagrad([*user_table.parameters(), *item_table.parameters(), *mix.parameters()], lr=0.05)
    clicked = [(torch.rand(users, items) < 0.02).to(device) for _ in range(4)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        seen = clicked[count % 4]
        scores = mix(user_table.weight) @ item_table.weight.t()
        if reads:
            loss = functional.softplus(-scores[seen]).mean()
        else:
            loss = (functional.softplus(-scores) * seen).sum() / seen.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
