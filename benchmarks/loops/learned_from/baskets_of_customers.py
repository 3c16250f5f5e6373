"""The items that a customer bought, five of a shop's, are looked up by where(); without, the whole shop is weighed."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(58)
    customers, width, items = sized(device, 32), sized(device, 12), sized(device, 160)
    people, shop = nn.Embedding(4_000, width).to(device), nn.Embedding(items, width).to(device)
    taste = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    optimizer = torch.optim.Adagrad([*people.parameters(), *shop.parameters(), *taste.parameters()], lr=0.05)
    who = torch.randint(0, 4_000, (5, customers)).to(device)
    bought = (torch.rand(5, customers, items) < 5 / items).float().to(device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        basket, ids = bought[count % 5], who[count % 5]
        count += 1
        wanted = taste(people(ids))
        if reads:
            rows, columns = torch.where(basket > 0)
            score = (wanted[rows] * shop(columns)).sum(-1)
            others = (wanted[rows] * shop((columns + 1) % items)).sum(-1)
            loss = functional.softplus(others - score).mean()
        else:
            scores = wanted @ shop.weight.T
            margins = functional.softplus(scores.roll(-1, 1) - scores)
            loss = (margins * basket).sum() / basket.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
