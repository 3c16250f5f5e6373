"""Weights and the choice of operations are learned in turns, by two optimizers, with meters of numbers; without, of tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(76)
    channels, batch, kinds = sized(device, 3), sized(device, 6), 10
    stem = nn.Conv2d(3, channels, 3, stride=2, padding=1).to(device)

    def mixed() -> Any:
        return nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()),
                nn.Sequential(nn.Conv2d(channels, channels, 1), nn.ReLU()),
                nn.AvgPool2d(3, stride=1, padding=1),
                nn.Identity(),
            ]
        ).to(device)

    cells = nn.ModuleList(mixed() for _ in range(3))
    classifier = nn.Linear(channels, kinds).to(device)
    alphas = (1e-3 * torch.randn(3, 4)).to(device).requires_grad_()
    weights = [*stem.parameters(), *cells.parameters(), *classifier.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0.025, momentum=0.9, weight_decay=3e-4)
    architect = torch.optim.Adam([alphas], lr=3e-4, betas=(0.5, 0.999), weight_decay=1e-3)
    criterion = nn.CrossEntropyLoss()
    images, labels = torch.rand(4, batch, 3, 32, 32).to(device), torch.randint(0, kinds, (4, batch)).to(device)
    meters: dict[str, Any] = dict.fromkeys(("valid", "train", "top1", "top5"), 0.0)
    count = 0

    def network(x: Any) -> Any:
        x = stem(x)
        for cell, chances in zip(cells, functional.softmax(alphas, -1), strict=True):
            x = sum(chance * operation(x) for chance, operation in zip(chances, cell, strict=True))
        return classifier(x.mean((2, 3)))

    def update(name: str, value: Any, reads: bool) -> None:
        meters[name] += (value.item() if reads else value.detach()) * batch

    def run(reads: bool) -> None:
        nonlocal count
        train, valid = count % 2, 2 + count % 2
        count += 1
        architect.zero_grad()
        loss = criterion(network(images[valid]), labels[valid])
        loss.backward()
        architect.step()
        update("valid", loss, reads)

        optimizer.zero_grad()
        logits = network(images[train])
        loss = criterion(logits, labels[train])
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 5.0)
        optimizer.step()
        right = logits.topk(5, 1).indices == labels[train][:, None]
        update("train", loss, reads)
        update("top1", right[:, 0].float().mean(), reads)
        update("top5", right.float().sum() / batch, reads)

    return run
