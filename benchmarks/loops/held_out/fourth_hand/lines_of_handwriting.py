"""Lines of handwriting are read by a network and CTC: how long lines and texts are lies on the device, a loss may be infinite.

Fixed: lengths stay on the host, CTC itself puts nought for an infinite loss. CTC waits on its own: next to nothing is saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Reader(nn.Module):
    """Convolutions that make a line of columns, and a recurrent network in both directions."""

    def __init__(self, width: int, letters: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        sizes = [1, width, 2 * width, 4 * width, 4 * width]
        for place in range(4):
            layers += [nn.Conv2d(sizes[place], sizes[place + 1], 3, padding=1), nn.BatchNorm2d(sizes[place + 1])]
            layers += [nn.ReLU(), nn.MaxPool2d(2 if place < 2 else (2, 1))]
        self.look = nn.Sequential(*layers)
        self.along = nn.LSTM(4 * width, 4 * width, num_layers=2, bidirectional=True)
        self.head = nn.Linear(8 * width, letters)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        columns = self.look(pictures).mean(2).permute(2, 0, 1)
        return F.log_softmax(self.head(self.along(columns)[0]), dim=-1)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, high, wide, longest = (48, 64, 64, 512, 40) if device.type == "cuda" else (4, 8, 16, 48, 5)
    letters = 80 if device.type == "cuda" else 12
    net = Reader(width, letters).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    lines = []
    for _number in range(4):
        pictures, texts = torch.rand(batch, 1, high, wide), torch.randint(1, letters, (batch, longest))
        columns, words = torch.randint(wide // 6, wide // 4 + 1, (batch,)), torch.randint(2, longest + 1, (batch,))
        seen = pictures.to(device), texts.to(device)
        lines.append((seen, (columns, words), (columns.to(device), words.to(device))))
    steps = skipped = 0

    def learn(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()

    def as_written() -> None:
        nonlocal steps, skipped
        (pictures, texts), _, (columns, words) = lines[steps % len(lines)]
        steps += 1
        loss = F.ctc_loss(net(pictures), texts, columns, words)
        if torch.isinf(loss):
            skipped += 1
            return
        learn(loss)

    def fixed() -> None:
        nonlocal steps
        (pictures, texts), (columns, words), _ = lines[steps % len(lines)]
        steps += 1
        learn(F.ctc_loss(net(pictures), texts, columns, words, zero_infinity=True))

    return lambda written: as_written() if written else fixed()
