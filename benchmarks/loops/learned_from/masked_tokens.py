"""A language model whose loss selects masked tokens (15 %) by a boolean index; without, the head runs over all of them."""

from __future__ import annotations

from typing import Any

from loops import Step, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    batch, length, width, words = (32, 256, 512, 16000) if device.type == "cuda" else (8, 32, 96, 1200)
    layers = [m for _ in range(4) for m in (nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))]
    body = nn.Sequential(nn.Embedding(words, width), *layers).to(device)
    head = nn.Linear(width, words).to(device)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-3)
    batches = []
    for _ in range(7):
        tokens, masked = torch.randint(0, words, (batch, length)), torch.rand(batch, length) < 0.15
        batches.append((tokens.to(device), torch.where(masked, tokens, -100).to(device)))
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        tokens, labels = batches[count % len(batches)]
        count += 1
        optimizer.zero_grad()
        hidden = body(tokens)
        if reads:
            mask = labels != -100
            loss = functional.cross_entropy(head(hidden[mask]), labels[mask])
        else:
            loss = functional.cross_entropy(head(hidden).view(-1, words), labels.view(-1), ignore_index=-100)
        loss.backward()
        optimizer.step()
        work(4)

    return run
