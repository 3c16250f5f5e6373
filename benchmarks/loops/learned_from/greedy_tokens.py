"""Sixteen tokens are drawn one after the other, and each is asked whether it ends the text; without, none is."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(34)
    width, words = sized(device, 96), sized(device, 400)
    cell = nn.GRUCell(width, width).to(device)
    table, head = nn.Embedding(words, width).to(device), nn.Linear(width, words).to(device)
    start = torch.zeros(8, dtype=torch.long).to(device)

    def run(reads: bool) -> None:
        state, token = torch.zeros(8, width, device=device), start
        with torch.no_grad():
            for _ in range(16):
                state = cell(table(token), state)
                token = head(state).argmax(-1)
                ended = (token == words).all()
                if reads and ended:
                    break

    return run
