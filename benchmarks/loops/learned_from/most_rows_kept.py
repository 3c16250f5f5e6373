"""Padding is cut out of a batch (one token in twelve) before the head; without, its labels are ignored."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(12)
    width, words, batch, length = sized(device, 64), sized(device, 200), sized(device, 8), 24
    body = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    head = nn.Linear(width, words).to(device)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-3)
    x = torch.randn(batch, length, width).to(device)
    labels = torch.randint(0, words, (batch, length)).to(device)
    padding = (torch.rand(batch, length) < 1 / 12).to(device)
    target = labels.masked_fill(padding, -100)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        hidden = body(x)
        if reads:
            real = ~padding
            loss = functional.cross_entropy(head(hidden[real]), labels[real])
        else:
            loss = functional.cross_entropy(head(hidden).flatten(0, 1), target.flatten(), ignore_index=-100)
        loss.backward()
        optimizer.step()
        work(3)

    return run
