"""Speech, sorted and cut by lengths that the device holds; a loss that may be NaN, a norm, words of every fourth step."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, frames, mels, width, letters = (64, 640, 80, 640, 32) if large else (8, 64, 40, 80, 32)
    network = nn.Sequential(
        nn.Linear(mels, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, letters)
    ).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    batches = []
    for _ in range(5):
        lengths = torch.randint(frames // 2, frames, (batch,))
        lengths[0] = frames * 7 // 8
        sound, said = torch.randn(batch, frames, mels), torch.randint(0, letters, (batch, frames))
        pinned = [part.pin_memory() if large else part for part in (sound, said, lengths)]
        batches.append(((sound, said, lengths), pinned))
    earlier = torch.randint(0, letters, (batch, frames)).tolist()
    count, skipped = 0, 0

    def run(reads: bool) -> None:
        nonlocal count, skipped
        pageable, pinned = batches[count % len(batches)]
        count += 1
        if reads:
            sound, said, lengths = (part.to(device) for part in pageable)
            order = lengths.argsort(descending=True)
            longest = max(lengths.tolist())
        else:
            sound, said, lengths = (part.to(device, non_blocking=True) for part in pinned)
            order = lengths.argsort(descending=True)
            longest = int(pageable[2].max())  # the loader still has them on the host
        sound, said, lengths = sound[order][:, :longest], said[order][:, :longest], lengths[order]
        heard = torch.arange(longest, device=device) < lengths[:, None]
        logits = network(sound)
        each = functional.cross_entropy(logits.flatten(0, 1), said.flatten(), reduction="none").view_as(heard)
        loss = (each * heard).sum() / heard.sum()
        if reads and torch.isnan(loss):
            skipped += 1
            return
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        if reads and not math.isfinite(norm.item()):
            skipped += 1
            return
        optimizer.step()
        if count % 4 == 0:
            letters_of = logits.argmax(-1).cpu().tolist() if reads else earlier
            for row in letters_of:
                [letter for letter, _ in groupby(row) if letter]

    return run
