"""What baskets hold is found by nonzero(), and the host picks the best of all else from lists, to go up; without, by masks."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, items, width, seen, most, hard = (512, 30000, 128, 20, 8, 16) if large else (16, 400, 24, 6, 4, 4)
    table = nn.Embedding(items, width).to(device)
    taste = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).to(device)
    optimizer = torch.optim.Adam([*table.parameters(), *taste.parameters()], lr=1e-3)
    batches = []
    for _ in range(4):
        baskets = [torch.randperm(items)[: 1 + row % most].tolist() for row in range(batch)]
        wanted = torch.zeros(batch, items)
        for row, basket in enumerate(baskets):
            wanted[row, basket] = 1.0
        batches.append((torch.randint(0, items, (batch, seen)).to(device), wanted.to(device), [*map(set, baskets)]))
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        history, wanted, baskets = batches[count % len(batches)]
        count += 1
        users = taste(table(history).mean(1))
        scores = users @ table.weight.T * width**-0.5
        if reads:
            best = scores.detach().topk(most + hard).indices.cpu().tolist()
            picked = [
                [item for item in row if item not in basket][:hard] for row, basket in zip(best, baskets, strict=True)
            ]
            others = scores.gather(1, torch.tensor(picked).to(device)).logsumexp(1)
            rows, columns = wanted.nonzero(as_tuple=True)
            chosen = scores[rows, columns]
            loss = (torch.logaddexp(chosen, others[rows]) - chosen).mean()
        else:
            best = scores.detach().masked_fill(wanted > 0, -torch.inf).topk(hard).indices
            others = scores.gather(1, best).logsumexp(1, keepdim=True)
            loss = ((torch.logaddexp(scores, others) - scores) * wanted).sum() / wanted.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
