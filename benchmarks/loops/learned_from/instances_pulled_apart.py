"""Each instance in an image is found by unique() and its mask, pulled together, pushed away from others; without, one-hot."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, relu = torch.nn, torch.nn.functional.relu
    torch.manual_seed(0)
    large = device.type == "cuda"
    images, side, channels, width, most = (8, 192, 48, 16, 8) if large else (2, 24, 8, 6, 4)
    layers = []
    for number in range(4):
        before = channels if number else 3
        layers += [nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Conv2d(channels, width, 1)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    near, far = 0.5, 3.0
    batches = []
    for _ in range(4):
        labels = torch.zeros(images, side, side, dtype=torch.long)  # nought is the ground
        for label in labels:
            for which in range(1, int(torch.randint(3, most + 1, ())) + 1):
                top, left = torch.randint(0, side * 2 // 3, (2,)).tolist()
                height, wide = torch.randint(side // 6, side // 3, (2,)).tolist()
                label[top : top + height, left : left + wide] = which
        batches.append((torch.randn(images, 3, side, side).to(device), labels.to(device)))
    numbers = torch.arange(1, most + 1, device=device)[:, None]
    shown: list[Any] = []
    count = 0

    def one_by_one(embeddings: Any, labels: Any) -> Any:
        pull = push = 0.0
        for embedding, label in zip(embeddings, labels, strict=True):
            means = []
            together = 0.0
            for which in label.unique():
                if which == 0:
                    continue
                inside = embedding[:, label == which]
                means.append(inside.mean(1))
                distance = ((inside - means[-1][:, None]).square().sum(0) + 1e-8).sqrt()
                together = together + relu(distance - near).square().mean()
            pull = pull + together / len(means)
            if len(means) > 1:
                stacked = torch.stack(means)
                apart = ((stacked[:, None] - stacked).square().sum(2) + 1e-8).sqrt()
                others = 1 - torch.eye(len(means), device=device)
                push = push + relu(far * others - apart).square().sum() / (len(means) * (len(means) - 1))
        return (pull + push) / len(embeddings)

    def all_at_once(embeddings: Any, labels: Any) -> Any:
        embeddings, labels = embeddings.flatten(2), labels.flatten(1)
        masks = (labels[:, None] == numbers).float()
        sizes = masks.sum(2)
        there = (sizes > 0).float()
        means = masks @ embeddings.transpose(1, 2) / sizes.clamp(min=1)[..., None]
        own = means.transpose(1, 2) @ masks
        distance = ((embeddings - own).square().sum(1) + 1e-8).sqrt()
        together = (masks @ relu(distance - near).square()[..., None])[..., 0] / sizes.clamp(min=1)
        found = there.sum(1)
        pull = together.sum(1) / found
        apart = ((means[:, :, None] - means[:, None]).square().sum(3) + 1e-8).sqrt()
        others = 1 - torch.eye(most, device=device)
        pairs = there[:, :, None] * there[:, None]
        push = (relu(far * others - apart).square() * pairs).sum((1, 2)) / (found * (found - 1)).clamp(min=1)
        return (pull + push).mean()

    def run(reads: bool) -> None:
        nonlocal count
        pictures, labels = batches[count % len(batches)]
        count += 1
        loss = (one_by_one if reads else all_at_once)(network(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item() if reads else loss.detach())
        del shown[:-20]

    return run
