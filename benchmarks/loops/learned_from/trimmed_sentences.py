"""A text classifier that trims each batch to its longest sentence, and asks the device how long that is.

Fixed: the collate function knows the lengths, as Python's numbers.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    width, batch, most = (512, 64, 128) if device.type == "cuda" else (32, 8, 24)
    words = nn.Embedding(1000, width, padding_idx=0).to(device)
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    body, head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device), nn.Linear(width, 4).to(device)
    parameters = [*words.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    chance = random.Random(0)
    batches = []
    for _n in range(8):
        lengths = [chance.randint(most // 2, most - 4) for _ in range(batch)]
        tokens = torch.zeros(batch, most, dtype=torch.long)
        for row, length in enumerate(lengths):
            tokens[row, :length] = torch.randint(1, 1000, (length,))
        batches.append((tokens.to(device), torch.randint(0, 4, (batch,)).to(device), lengths))
    turn = 0

    def learn(tokens: torch.Tensor, labels: torch.Tensor) -> None:
        padding = tokens.eq(0)
        hidden = body(words(tokens), src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1).float()
        pooled = (hidden * kept).sum(1) / kept.sum(1)
        optimizer.zero_grad()
        F.cross_entropy(head(pooled), labels).backward()
        optimizer.step()

    def as_written() -> None:
        nonlocal turn
        tokens, labels, _lengths = batches[turn % 8]
        turn += 1
        longest = int(tokens.ne(0).sum(1).max())
        learn(tokens[:, :longest], labels)

    def fixed() -> None:
        nonlocal turn
        tokens, labels, lengths = batches[turn % 8]
        turn += 1
        learn(tokens[:, : max(lengths)], labels)

    return lambda written: as_written() if written else fixed()
