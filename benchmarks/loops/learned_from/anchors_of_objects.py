"""Judged anchors, nine of ten, are selected, the loss is divided by a moving number of objects; without, it is weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(95)
    anchors, kinds, width = sized(device, 64) ** 2 // 4, 8, sized(device, 24)
    head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, kinds)).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9)
    features = torch.randn(4, anchors, width).to(device)
    state = torch.where(torch.rand(4, anchors) < 0.1, -1, (torch.rand(4, anchors) < 0.05).long()).to(device)
    target = (torch.rand(4, anchors, kinds) < 0.1).float().to(device)
    normalizer: dict[bool, Any] = {True: 100.0, False: torch.tensor(100.0, device=device)}
    count = 0

    def focal(logits: Any, wanted: Any) -> Any:
        loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        chance = logits.sigmoid()
        return loss * (wanted * (1 - chance) + (1 - wanted) * chance) ** 2

    def run(reads: bool) -> None:
        nonlocal count
        of = count % 4
        count += 1
        logits, judged, objects = head(features[of]), state[of] != -1, (state[of] == 1).sum()
        normalizer[reads] = 0.9 * normalizer[reads] + 0.1 * (objects.item() if reads else objects)
        if reads:
            loss = focal(logits[judged], target[of][judged]).sum() / normalizer[True]
        else:
            loss = (focal(logits, target[of]) * judged.unsqueeze(1)).sum() / normalizer[False]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
