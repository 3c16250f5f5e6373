"""Boxes of the few anchors that hold an object, by a large head, counted by the host; without, of all of them, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, anchors, width, inner = (8, 2048, 256, 512) if large else (2, 256, 64, 96)
    trunk = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width), nn.ReLU()).to(device)
    score = nn.Linear(width, 1).to(device)
    head = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, 4))
    head = head.to(device)
    network = nn.ModuleList([trunk, score, head])
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    scenes = []
    for _ in range(5):
        drawn = torch.rand(batch, anchors)
        labels = torch.where(drawn < 0.03, 1, torch.where(drawn < 0.1, -1, 0))  # -1: neither
        scene = torch.randn(batch, anchors, width), labels, torch.rand(batch, anchors, 4)
        scenes.append([part.to(device) for part in scene])
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x, labels, boxes = scenes[count % len(scenes)]
        count += 1
        features = trunk(x)
        scores = score(features)[..., 0]
        positive, sure = labels == 1, labels >= 0
        if reads:
            positives = max(1, int(positive.sum()))
            away = functional.smooth_l1_loss(head(features[positive]), boxes[positive], reduction="sum")
            found = functional.binary_cross_entropy_with_logits(scores[sure], labels[sure].float())
            loss = found + away / positives
            logged = {"found": found.item(), "boxes": away.item() / positives, "all": loss.item()}
        else:
            positives = positive.sum().clamp(min=1)
            each = functional.smooth_l1_loss(head(features), boxes, reduction="none")
            away = (each * positive[..., None]).sum()
            each = functional.binary_cross_entropy_with_logits(scores, labels.clamp(min=0).float(), reduction="none")
            found = (each * sure).sum() / sure.sum()
            loss = found + away / positives
            logged = {"found": found.detach(), "boxes": away.detach() / positives, "all": loss.detach()}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert len(logged) == 3

    return run
