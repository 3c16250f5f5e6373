"""A codec of sounds: each of eight codebooks asks whether it has begun, whether a code is unused, and says how many are used.

Fixed: Python knows whether the books have begun, unused codes are replaced by `where`, how many are used is read at the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

BOOKS, DECAY, UNUSED = 8, 0.99, 0.5


class Book(nn.Module):
    """A codebook whose codes follow the mean of what they stand for."""

    begun: torch.Tensor
    codes: torch.Tensor
    counts: torch.Tensor
    sums: torch.Tensor

    def __init__(self, many: int, width: int) -> None:
        super().__init__()
        self.register_buffer("begun", torch.tensor(False))
        self.register_buffer("codes", torch.zeros(many, width))
        self.register_buffer("counts", torch.ones(many))
        self.register_buffer("sums", torch.zeros(many, width))
        self.known = False  # what begun is, for those who do not ask the device

    def begin(self, x: torch.Tensor) -> None:
        self.codes.copy_(x[: len(self.codes)])
        self.sums.copy_(self.codes)
        self.begun.fill_(True)
        self.known = True

    def follow(self, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """How often each code was chosen; the codes move."""
        one_hot = F.one_hot(chosen, len(self.codes)).type_as(x)
        found = one_hot.sum(0)
        self.counts.mul_(DECAY).add_(found, alpha=1 - DECAY)
        self.sums.mul_(DECAY).add_(one_hot.T @ x, alpha=1 - DECAY)
        self.codes.copy_(self.sums / self.counts.clamp_min(1e-5)[:, None])
        return found

    def forward(self, x: torch.Tensor, asks: bool) -> tuple[torch.Tensor, Any]:
        """The nearest codes, and the perplexity of them: a number, if it asks."""
        with torch.no_grad():
            if not (self.begun if asks else self.known):
                self.begin(x)
            apart = x.square().sum(1, keepdim=True) - 2 * x @ self.codes.T + self.codes.square().sum(1)
            chosen = apart.argmin(1)
            found = self.codes[chosen]
            share = self.follow(x, chosen) / len(x)
            perplexity: Any = (-(share * (share + 1e-10).log()).sum()).exp()
            unused = self.counts < UNUSED
            if asks:
                perplexity = perplexity.item()
                if torch.any(unused):
                    self.replace(unused, x)
            else:
                self.replace(unused, x)
        return found, perplexity

    def replace(self, unused: torch.Tensor, x: torch.Tensor) -> None:
        """What is not used becomes something that was just heard."""
        heard = x[: len(self.codes)]
        self.codes.copy_(torch.where(unused[:, None], heard, self.codes))
        self.sums.copy_(torch.where(unused[:, None], heard, self.sums))
        self.counts.masked_fill_(unused, 1.0)


class Beside(nn.Module):
    """Two convolutions beside a straight way."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ELU(), nn.Conv1d(width, width // 2, 3, padding=1), nn.ELU(), nn.Conv1d(width // 2, width, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, long, width, codes = (16, 16000, 48, 512) if device.type == "cuda" else (4, 640, 4, 8)
    into: list[nn.Module] = [nn.Conv1d(1, width, 7, padding=3)]
    back: list[nn.Module] = [nn.Conv1d(width, 1, 7, padding=3)]
    for place, stride in enumerate((2, 4, 5, 8)):
        fine, coarse = width * 2**place, width * 2 ** (place + 1)
        padding = (stride + 1) // 2
        into += [Beside(fine), nn.ELU(), nn.Conv1d(fine, coarse, 2 * stride, stride, padding)]
        up = nn.ConvTranspose1d(coarse, fine, 2 * stride, stride, padding, output_padding=stride % 2)
        back = [up, Beside(fine), nn.ELU(), *back]
    inside = 128 if device.type == "cuda" else 16
    encoder = nn.Sequential(*into, nn.ELU(), nn.Conv1d(16 * width, inside, 3, padding=1)).to(device)
    decoder = nn.Sequential(nn.Conv1d(inside, 16 * width, 3, padding=1), nn.ELU(), *back).to(device)
    books = nn.ModuleList(Book(codes, inside) for _ in range(BOOKS)).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-4)
    sounds = [torch.randn(batch, 1, long).to(device) for _ in range(4)]
    used: list[list[float]] = []
    steps = 0

    def learn(asks: bool) -> list[Any]:
        nonlocal steps
        sound = sounds[steps % len(sounds)]
        steps += 1
        heard = encoder(sound)
        rest = flat = heard.transpose(1, 2).flatten(0, 1)
        whole, commit, perplexities = torch.zeros_like(flat), torch.zeros((), device=device), []
        for book in books:
            found, perplexity = book(rest.detach(), asks)
            commit = commit + F.mse_loss(rest, found)
            rest, whole = rest - found, whole + found
            perplexities.append(perplexity)
        passed = (flat + (whole - flat).detach()).view(batch, -1, inside).transpose(1, 2)
        loss = F.l1_loss(decoder(passed), sound) + 0.1 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return perplexities

    def fixed() -> None:
        used.append(torch.stack(learn(asks=False)).tolist())

    return lambda written: used.append(learn(asks=True)) if written else fixed()
