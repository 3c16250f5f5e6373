"""Self-critical captions: words are drawn until every caption has ended, which is asked after each; then comes the update.

Fixed: asked after every eighth word.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

END, LONGEST = 0, 24


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, words = (128, 512, 4000) if device.type == "cuda" else (8, 32, 200)
    embed, cell, head = (
        nn.Embedding(words, width).to(device),
        nn.GRUCell(width, width).to(device),
        nn.Linear(width, words).to(device),
    )
    optimizer = torch.optim.Adam([*embed.parameters(), *cell.parameters(), *head.parameters()], lr=1e-5)
    pictures = torch.randn(batch, width).to(device)
    reward = torch.rand(batch).to(device) - 0.5

    def sample(every: int) -> torch.Tensor:
        hidden, token = pictures, torch.ones(batch, dtype=torch.long, device=device)
        ended, said = torch.zeros(batch, dtype=torch.bool, device=device), torch.zeros(batch, device=device)
        for place in range(LONGEST):
            hidden = cell(embed(token), hidden)
            logp = head(hidden).log_softmax(-1)
            noise = torch.rand(batch, words, device=device).clamp(1e-6, 1 - 1e-6)
            token = (logp.detach() - torch.log(-torch.log(noise))).argmax(-1)
            said = said + logp.gather(1, token[:, None])[:, 0].masked_fill(ended, 0.0)
            ended = ended | (token == END)
            if (place + 1) % every == 0 and ended.all():
                break
        return said

    def update(said: torch.Tensor) -> None:
        optimizer.zero_grad()
        (-reward * said).mean().backward()
        optimizer.step()

    def as_written() -> None:
        update(sample(1))

    def fixed() -> None:
        update(sample(8))

    return lambda written: as_written() if written else fixed()
