"""A reader of questions scores the words of the few sentences that may hold the answer; without, of all, masked."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(32)
    sentences, width, words = sized(device, 96), sized(device, 48), sized(device, 256)
    encoder = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    head = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, words)).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-4)
    text = torch.randn(sentences, width).to(device)
    answer = torch.randint(0, words, (sentences,)).to(device)
    masks = [(torch.rand(sentences) < 0.1).to(device) for _ in range(6)]
    step = 0

    def run(reads: bool) -> None:
        nonlocal step
        step += 1
        relevant = masks[step % 6]
        hidden = encoder(text)
        if reads:
            loss = functional.cross_entropy(head(hidden[relevant]), answer[relevant])
        else:
            loss = functional.cross_entropy(head(hidden), answer.masked_fill(~relevant, -100), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
