"""A graph of papers: a loss over the nodes of a mask, then three accuracies and whether to stop early, by six counts."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    nodes, width, inner, classes = sized(device, 1200), sized(device, 48), sized(device, 32), 12
    edges = 4 * nodes
    first, second = nn.Linear(width, inner).to(device), nn.Linear(inner, classes).to(device)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01, weight_decay=5e-4)
    x, topics = torch.randn(nodes, width).to(device), torch.randint(0, classes, (nodes,)).to(device)
    source, target = (torch.randint(0, nodes, (edges,)).to(device) for _ in range(2))
    drawn = torch.rand(nodes)
    train, valid, test = ((low <= drawn) & (drawn < high) for low, high in ((0, 0.6), (0.6, 0.8), (0.8, 1.1)))
    train, valid, test = train.to(device), valid.to(device), test.to(device)
    best: Any = 0.0
    without = torch.zeros((), device=device)
    patience = 0

    def passed(h: Any) -> Any:
        return h + torch.zeros_like(h).index_add_(0, target, h.index_select(0, source)) / 5

    def network() -> Any:
        return passed(second(functional.relu(passed(first(x)))))

    def run(reads: bool) -> None:
        nonlocal best, without, patience
        optimizer.zero_grad()
        out = network()
        if reads:
            loss = functional.cross_entropy(out[train], topics[train])
        else:
            each = functional.cross_entropy(out, topics, reduction="none")
            loss = (each * train).sum() / train.sum()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            guess = network().argmax(1)
            right = []
            for mask in (train, valid, test):
                if reads:
                    right.append(guess[mask].eq(topics[mask]).sum().item() / mask.sum().item())
                else:
                    right.append((guess.eq(topics) & mask).sum() / mask.sum())
        if reads:
            f"{loss.item():.4f} {right}"
            patience = 0 if right[1] > best else patience + 1
            best = max(best, right[1])
        else:
            without = torch.maximum(without, right[1])

    return run
