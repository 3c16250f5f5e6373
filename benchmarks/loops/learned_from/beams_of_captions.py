"""Captions by beam search: the four best of every word go to lists, which say how to go on; without, they stay tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(59)
    width, words, beams, length = sized(device, 48), sized(device, 250), 4, 14
    cell, table = nn.GRUCell(width, width).to(device), nn.Embedding(words, width).to(device)
    head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, words)).to(device)
    image = torch.randn(beams, width).to(device)

    @torch.no_grad()
    def run(reads: bool) -> None:
        state = image
        tokens = torch.zeros(beams, dtype=torch.long, device=device)
        scores = torch.zeros(beams, 1, device=device)
        captions: list[list[int]] = [[] for _ in range(beams)]
        history = []
        for _ in range(length):
            state = cell(table(tokens), state)
            found = scores + head(state).log_softmax(-1)
            best, places = found.flatten().topk(beams)
            scores = best[:, None]
            if reads:
                chosen = places.tolist()
                parents = [place // words for place in chosen]
                captions = [[*captions[parent], place % words] for parent, place in zip(parents, chosen, strict=True)]
                tokens = torch.tensor([caption[-1] for caption in captions], device=device)
                state = state[torch.tensor(parents, device=device)]
            else:
                tokens = places % words
                state = state[places // words]
                history.append(places)

    return run
