"""A long text in pieces, whose state goes on: the perplexity of each is read, and some are cut where they hold padding."""

from __future__ import annotations

import math
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, length, width, words = (64, 24, 512, 4096) if large else (8, 6, 72, 256)
    known, cell, head = nn.Embedding(words, width), nn.Linear(2 * width, 2 * width), nn.Linear(width, words)
    network = nn.ModuleList([known, cell, head]).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    ends = [length - number % 3 for number in range(6)]
    texts = []
    for end in ends:
        text = torch.randint(1, words, (batch, length + 1))
        text[:, end + 1 :] = 0
        texts.append(text.to(device))
    state = torch.zeros(batch, width).to(device)
    rate, best, count = 0.1, math.inf, 0

    def run(reads: bool) -> None:
        nonlocal state, rate, best, count
        text, end = texts[count % len(texts)], ends[count % len(texts)]
        count += 1
        if reads:
            end = int((text[:, 1:] != 0).any(0).sum())
        state, hidden = state.detach(), []
        seen = known(text[:, :end])
        for place in range(end):
            gate, new = cell(torch.cat([seen[:, place], state], 1)).chunk(2, 1)
            state = torch.lerp(state, torch.tanh(new), torch.sigmoid(gate))
            hidden.append(state)
        logits = head(torch.stack(hidden, 1))
        loss = functional.cross_entropy(logits.flatten(0, 1), text[:, 1 : end + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), 0.25)
        optimizer.step()
        if reads:
            now = loss.item()
            f"{now:.3f} {math.exp(min(now, 20)):.1f} {norm:.2f}"
            best = min(best, now)

    return run
