"""One in five of the samples drawn is kept for a loss on a large network; without, all pass it and the others weigh nought."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(23)
    width, inner, batch = sized(device, 64), sized(device, 320), sized(device, 192)
    draw = nn.Linear(width, width).to(device)
    judge = nn.Sequential(
        nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, 1)
    ).to(device)
    optimizer = torch.optim.SGD([*draw.parameters(), *judge.parameters()], lr=1e-4)
    noise = [torch.randn(batch, width).to(device) for _ in range(5)]
    kept = [(torch.rand(batch) < 0.2).to(device) for _ in range(5)]
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        optimizer.zero_grad()
        samples, keep = draw(noise[count % 5]), kept[count % 5]
        if reads:
            loss = judge(samples[keep]).square().mean()
        else:
            loss = torch.where(keep, judge(samples).square().squeeze(1), 0.0).sum() / keep.sum()
        loss.backward()
        optimizer.step()

    return run
