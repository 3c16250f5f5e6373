"""Fine-tuning on answers, which are most of the tokens: selected by a mask, counted, their accuracy told in each step."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, length, width, words = (4, 384, 512, 4096) if large else (2, 40, 64, 400)
    blocks = [
        m
        for _ in range(3)
        for m in (nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    ]
    network = nn.Sequential(nn.Embedding(words, width), *blocks, nn.Linear(width, words)).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-5)
    batches = []
    for _ in range(6):
        tokens = torch.randint(0, words, (batch, length))
        starts = torch.randint(length // 16, length // 5, (batch, 1))
        labels = torch.where(torch.arange(length) < starts, -100, tokens)
        batches.append((tokens.to(device), labels.to(device)))
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        optimizer.zero_grad()
        for _ in range(2):  # accumulated
            tokens, labels = batches[count % len(batches)]
            count += 1
            logits, labels = network(tokens)[:, :-1], labels[:, 1:]
            keep = labels != -100
            if reads:
                kept = logits[keep]
                loss = functional.cross_entropy(kept, labels[keep], reduction="sum") / keep.sum().item()
                accuracy = (kept.argmax(-1) == labels[keep]).float().mean().item()
            else:
                flat = logits.flatten(0, 1)
                loss = functional.cross_entropy(flat, labels.flatten(), ignore_index=-100, reduction="sum")
                loss = loss / keep.sum()
                accuracy = ((logits.argmax(-1) == labels) & keep).sum() / keep.sum()
            (loss / 2).backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if reads and count % 10 == 0:
            f"{count} {loss.item():.3f} {norm.item():.3f} {accuracy:.2%}"

    return run
