"""A detector by queries: the costs go to the host, which assigns boxes to queries; without, it assigns by earlier costs."""

from __future__ import annotations

import math
from typing import Any

from loops import Step


def assigned(costs: Any) -> tuple[list[int], list[int]]:
    """A query for each box, the cheapest first."""
    queries, boxes = [], []
    costs = costs.copy()
    for _ in range(costs.shape[1]):
        query, box = divmod(int(costs.argmin()), costs.shape[1])
        queries.append(query)
        boxes.append(box)
        costs[query, :] = costs[:, box] = math.inf
    return queries, boxes


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, queries, cells, width, classes = (16, 100, 1024, 256, 91) if large else (4, 24, 96, 64, 20)
    body = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    asked = nn.Embedding(queries, width).to(device)
    layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3)).to(device)
    to_class = nn.Linear(width, classes + 1).to(device)
    to_box = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)).to(device)
    network = nn.ModuleList([body, asked, layers, to_class, to_box])
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    x = torch.randn(batch, cells, width).to(device)
    sizes = [3 + number % 5 for number in range(batch)]
    labels = [torch.randint(0, classes, (size,)).to(device) for size in sizes]
    boxes = [torch.rand(size, 4).to(device) for size in sizes]
    earlier = torch.rand(batch, queries, sum(sizes))

    def uploaded(values: Any, reads: bool) -> Any:
        if reads or not large:
            return values.to(device)
        return values.pin_memory().to(device, non_blocking=True)

    def run(reads: bool) -> None:
        cell = body(x)
        hidden = asked.weight.expand(batch, queries, width)
        for layer in layers:
            seen = torch.softmax(hidden @ cell.transpose(1, 2) / math.sqrt(width), -1)
            hidden = functional.layer_norm(hidden + layer(seen @ cell), (width,))
        logits, found = to_class(hidden), to_box(hidden).sigmoid()
        all_labels, all_boxes = torch.cat(labels), torch.cat(boxes)
        with torch.no_grad():
            chances = logits.flatten(0, 1).softmax(-1)
            away = (found.flatten(0, 1)[:, None] - all_boxes).abs().sum(-1)
            costs = (5 * away - chances.index_select(1, all_labels)).view(batch, queries, -1)
            costs = costs.cpu() if reads else earlier
        pairs = [assigned(part[i].numpy()) for i, part in enumerate(costs.split(sizes, -1))]
        images = uploaded(torch.tensor([i for i, (q, _) in enumerate(pairs) for _ in q]), reads)
        chosen = uploaded(torch.tensor([q for qs, _ in pairs for q in qs]), reads)
        order = uploaded(torch.tensor([b + sum(sizes[:i]) for i, (_, bs) in enumerate(pairs) for b in bs]), reads)
        targets = torch.full((batch, queries), classes, device=device)
        targets[images, chosen] = all_labels[order]
        by_class = functional.cross_entropy(logits.transpose(1, 2), targets)
        by_box = functional.l1_loss(found[images, chosen], all_boxes[order])
        loss = by_class + 5 * by_box
        logged = {"class": by_class.detach(), "box": by_box.detach(), "loss": loss.detach()}
        if reads:
            numbers = {name: value.item() for name, value in logged.items()}
            if not math.isfinite(numbers["loss"]):
                raise FloatingPointError(numbers)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step()

    return run
