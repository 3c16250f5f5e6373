"""One token in twelve is predicted: a boolean index before a head of two layers; without, all pass it, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(11)
    width, words, tokens = sized(device, 64), sized(device, 500), sized(device, 192)
    body = nn.Sequential(nn.Linear(width, 4 * width), nn.Tanh(), nn.Linear(4 * width, width)).to(device)
    head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, words)).to(device)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-3, momentum=0.9)
    x, target = torch.randn(tokens, width).to(device), torch.randint(0, words, (tokens,)).to(device)
    chosen = [(torch.rand(tokens) < 1 / 12).to(device) for _ in range(5)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        keep = chosen[count % 5]
        optimizer.zero_grad(set_to_none=True)
        hidden = body(x)
        if reads:
            loss = functional.cross_entropy(head(hidden[keep]), target[keep])
        else:
            each = functional.cross_entropy(head(hidden), target, reduction="none")
            loss = torch.where(keep, each, 0.0).sum() / keep.sum()
        loss.backward()
        optimizer.step()

    return run
