"""Findings are named in clinical notes, by an LSTM and a CRF: the best tags of each note are followed back word by word.

Fixed: lengths are those of the loader, whose notes come sorted; all notes are followed back at once, by `gather`; hits stay.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Field(nn.Module):
    """A linear chain of tags: how well each begins, ends, and follows another."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.begins, self.ends = nn.Parameter(0.1 * torch.randn(tags)), nn.Parameter(0.1 * torch.randn(tags))
        self.follows = nn.Parameter(0.1 * torch.randn(tags, tags))

    def likelihood(self, scores: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The logarithm of it, of each note."""
        each = scores.gather(2, tags[..., None])[..., 0]
        pairs = self.follows[tags[:-1], tags[1:]]
        last = tags.gather(0, mask.sum(0, keepdim=True) - 1)[0]
        told = self.begins[tags[0]] + (each * mask).sum(0) + (pairs * mask[1:]).sum(0) + self.ends[last]
        whole = self.begins + scores[0]
        for score, real in zip(scores[1:], mask[1:], strict=True):
            after = torch.logsumexp(whole[:, :, None] + self.follows + score[:, None], 1)
            whole = torch.where(real[:, None], after, whole)
        return told - torch.logsumexp(whole + self.ends, 1)

    def forward_best(self, scores: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """How good each last tag is, and which one before it led there."""
        best, history = self.begins + scores[0], []
        for score, real in zip(scores[1:], mask[1:], strict=True):
            after, before = (best[:, :, None] + self.follows).max(1)
            best = torch.where(real[:, None], after + score, best)
            history.append(before)
        return best + self.ends, history

    def decode(self, scores: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        """The best tags of each note."""
        best, history = self.forward_best(scores, mask)
        last_words = mask.long().sum(0) - 1
        found = []
        for note in range(len(best)):
            tag = best[note].argmax(0)
            tags = [tag.item()]
            for before in reversed(history[: last_words[note]]):
                tag = before[note][tags[-1]]
                tags.append(tag.item())
            found.append(tags[::-1])
        return found

    def decode_all(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The same as a tensor, of any tag where a note has ended."""
        best, history = self.forward_best(scores, mask)
        tag = best.argmax(1, keepdim=True)
        tags = [tag]
        for before, real in zip(reversed(history), reversed(mask[1:]), strict=True):
            tag = torch.where(real[:, None], before.gather(1, tag), tag)
            tags.append(tag)
        return torch.cat(tags[::-1], 1).T


class Reader(nn.Module):
    """Words, what stands around them, and how well each tag fits."""

    def __init__(self, words: int, width: int, tags: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True)
        self.out = nn.Linear(2 * width, tags)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor, is_sorted: bool) -> torch.Tensor:
        packed = pack_padded_sequence(self.words(words), lengths, enforce_sorted=is_sorted)
        return self.out(pad_packed_sequence(self.lstm(packed)[0], total_length=len(words))[0])


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    notes, longest, words, width, tags = (32, 48, 20000, 256, 17) if device.type == "cuda" else (4, 8, 50, 8, 5)
    net, field = Reader(words, width, tags).to(device), Field(tags).to(device)
    optimizer = torch.optim.Adam([*net.parameters(), *field.parameters()], lr=1e-3)
    batches = []
    for _ in range(4):
        lengths = torch.randint(longest // 3, longest + 1, (notes,)).sort(descending=True).values
        lengths[0] = longest
        mask = torch.arange(longest)[:, None] < lengths
        text = torch.randint(1, words, (longest, notes)) * mask
        batches.append((text.to(device), (text % tags).to(device), mask.to(device), lengths))
    log: list[tuple[float, float]] = []
    kept: list[torch.Tensor] = []
    steps = 0

    def learn(scores: torch.Tensor, truth: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        loss = -field.likelihood(scores, truth, mask).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        return loss.detach()

    def as_written() -> None:
        text, truth, mask, _ = batches[steps % len(batches)]
        if not mask[0].all():
            raise ValueError("a note has no words")
        scores = net(text, mask.sum(0).cpu(), is_sorted=False)
        loss = learn(scores, truth, mask)
        with torch.no_grad():
            found = field.decode(scores, mask)
        right = total = 0
        for tags, true in zip(found, truth.T.tolist(), strict=True):
            right += sum(a == b for a, b in zip(tags, true, strict=False))
            total += len(tags)
        log.append((loss.item(), right / total))

    def fixed() -> None:
        text, truth, mask, lengths = batches[steps % len(batches)]
        scores = net(text, lengths, is_sorted=True)
        loss = learn(scores, truth, mask)
        with torch.no_grad():
            right = ((field.decode_all(scores, mask) == truth) & mask).sum() / int(lengths.sum())
        kept.append(torch.stack([loss, right]))
        if len(kept) == 50:
            log.extend((one, share) for one, share in torch.stack(kept).tolist())
            kept.clear()

    def step(written: bool) -> None:
        nonlocal steps
        steps += 1
        if written:
            as_written()
        else:
            fixed()

    return step
