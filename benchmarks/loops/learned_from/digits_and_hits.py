"""The first loop of every course: the loss and the number of right answers are added up as numbers; without, as tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(91)
    batch, channels = 2 * sized(device, 8), sized(device, 4)
    net = nn.Sequential(
        nn.Conv2d(1, channels, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(channels * 13 * 13, 10)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
    images, labels = torch.rand(4, batch, 1, 28, 28).to(device), torch.randint(0, 10, (4, batch)).to(device)
    told, kept = {"loss": 0.0, "right": 0}, {"loss": torch.zeros((), device=device), "right": 0}
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x, y = images[count % 4], labels[count % 4]
        count += 1
        optimizer.zero_grad()
        output = net(x)
        loss = nn.functional.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        right = (output.argmax(1) == y).sum()
        if reads:
            told["loss"] += loss.item()
            told["right"] += right.item()
        else:
            kept["loss"] = kept["loss"] + loss.detach()
            kept["right"] = kept["right"] + right

    return run
