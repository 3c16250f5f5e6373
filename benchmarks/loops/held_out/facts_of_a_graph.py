"""Which things a fact may end in, a few of thousands, is found by nonzero() in scores of all; without, a weighted sum."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(79)
    things, relations, width, batch = 2 * sized(device, 400), 40, sized(device, 16), sized(device, 40)
    entity, relation = nn.Embedding(things, width).to(device), nn.Embedding(relations, width).to(device)
    mix = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    bias = torch.zeros(things, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([*entity.parameters(), *relation.parameters(), *mix.parameters(), bias], lr=1e-3)
    heads, kinds = (torch.randint(0, most, (4, batch)).to(device) for most in (things, relations))
    tails = torch.zeros(4, batch, things).scatter_(2, torch.randint(0, things, (4, batch, 3)), 1.0).to(device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        head, kind, target = heads[count % 4], kinds[count % 4], tails[count % 4]
        count += 1
        query = mix(torch.cat([entity(head), relation(kind)], 1))
        scores = functional.log_softmax(query @ entity.weight.T + bias, 1)
        if reads:
            rows, columns = target.nonzero(as_tuple=True)
            loss = -scores[rows, columns].mean()
        else:
            loss = -(scores * target).sum() / target.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
