"""Sixteen words are made one after the other, each read as a number before the next; without, it stays a tensor."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(13)
    width, words = sized(device, 96), sized(device, 150)
    embedding = nn.Embedding(words, width).to(device)
    cell = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.Tanh()).to(device)
    out = nn.Linear(width, words).to(device)
    begin = torch.zeros(1, dtype=torch.long).to(device)

    def run(reads: bool) -> None:
        with torch.no_grad():
            state, word, said = embedding(begin), begin, []
            for _ in range(16):
                state = cell(state + embedding(word))
                word = out(state).argmax(-1)
                said.append(word.item() if reads else word)
            if not reads:
                torch.cat(said)

    return run
