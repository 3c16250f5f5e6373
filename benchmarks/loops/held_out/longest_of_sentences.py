"""Sentences are cut to the longest of the batch, which the device is asked for; without, all are as long as they may be."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(96)
    words, batch, most, width = 500, sized(device, 8), 24, sized(device, 24)
    embedding, head = nn.Embedding(words, width).to(device), nn.Linear(width, 2).to(device)
    mixing = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    optimizer = torch.optim.Adam([*embedding.parameters(), *head.parameters(), *mixing.parameters()], lr=1e-3)
    tokens, labels = torch.randint(1, words, (6, batch, most)).to(device), torch.randint(0, 2, (6, batch)).to(device)
    lengths = torch.randint(12, most + 1, (6, batch)).to(device)
    positions = torch.arange(most).to(device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        of = count % 6
        count += 1
        longest = lengths[of].max().item() if reads else most
        there = (positions[:longest] < lengths[of].unsqueeze(1)).unsqueeze(2).float()
        mixed = mixing(embedding(tokens[of][:, :longest])) * there
        loss = nn.functional.cross_entropy(head(mixed.sum(1) / there.sum(1)), labels[of])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
