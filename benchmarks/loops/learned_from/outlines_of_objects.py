"""One in sixteen proposals of a detector is an object, and only those are outlined, by six convolutions; without, all."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    proposals, channels, side, inner, kinds = (512, 64, 14, 512, 20) if device.type == "cuda" else (48, 8, 7, 32, 5)
    neck = nn.Sequential(nn.Conv2d(channels, channels, 1), nn.ReLU())
    trunk = nn.Sequential(nn.Flatten(), nn.Linear(channels * side * side, inner), nn.ReLU())
    judge, boxer = nn.Linear(inner, kinds + 1), nn.Linear(inner, 4)
    layers = [layer for _ in range(5) for layer in (nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU())]
    outliner = nn.Sequential(*layers, nn.Upsample(scale_factor=2), nn.Conv2d(channels, kinds, 3, padding=1))
    network = nn.ModuleList([neck, trunk, judge, boxer, outliner]).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.005, momentum=0.9)
    batches = []
    for _ in range(3):
        kind = torch.randint(1, kinds + 1, (proposals,)) * (torch.rand(proposals) < 1 / 16)
        kind[0] = 1
        parts = torch.randn(proposals, channels, side, side), kind, torch.randn(proposals, 4)
        batches.append([part.to(device) for part in (*parts, torch.rand(proposals, 2 * side, 2 * side).round())])
    rows = torch.arange(proposals, device=device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        pooled, kind, box, outline = batches[count % len(batches)]
        count += 1
        features = neck(pooled)
        hidden = trunk(features)
        loss = functional.cross_entropy(judge(hidden), kind)
        said = boxer(hidden)
        if reads:
            positive = torch.nonzero(kind > 0).squeeze(1)
            if positive.numel() > 0:
                loss = loss + functional.smooth_l1_loss(said[positive], box[positive], reduction="sum") / proposals
                drawn = outliner(features[kind > 0])
                drawn = drawn[torch.arange(len(positive), device=device), kind[positive] - 1]
                loss = loss + functional.binary_cross_entropy_with_logits(drawn, outline[positive])
        else:
            share = (kind > 0).float()
            far = functional.smooth_l1_loss(said, box, reduction="none").sum(1)
            loss = loss + (far * share).sum() / proposals
            drawn = outliner(features)[rows, (kind - 1).clamp(min=0)]
            wrong = functional.binary_cross_entropy_with_logits(drawn, outline, reduction="none").mean((1, 2))
            loss = loss + (wrong * share).sum() / share.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
