"""A segmentation network is evaluated: each batch is counted into a matrix by a mask, and the IoU is shown as it goes."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, side, channels, classes = (8, 128, 48, 21) if large else (2, 24, 10, 8)
    network = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, classes, 1),
    )
    network = network.to(device).eval()
    scenes = []
    for _ in range(3):
        labels = torch.randint(0, classes, (batch, side, side))
        labels[torch.rand(batch, side, side) < 0.08] = 255
        scenes.append((torch.randn(batch, 3, side, side).to(device), labels.to(device)))
    matrix = torch.zeros(classes, classes, dtype=torch.int64, device=device)

    def run(reads: bool) -> None:
        matrix.zero_()
        shown: list[Any] = []
        with torch.no_grad():
            for images, labels in scenes:
                true, guess = labels.flatten(), network(images).argmax(1).flatten()
                if reads:
                    keep = (true >= 0) & (true < classes)
                    pairs = classes * true[keep] + guess[keep]
                    matrix.add_(torch.bincount(pairs, minlength=classes**2).reshape(classes, classes))
                else:
                    keep = true < classes
                    pairs = torch.where(keep, classes * true + guess, 0)
                    matrix.view(-1).index_add_(0, pairs, keep.long())
                counts = matrix.float()
                iou = counts.diag() / (counts.sum(0) + counts.sum(1) - counts.diag()).clamp(min=1)
                right = counts.diag().sum() / counts.sum()
                if reads:
                    shown.append(f"{right.item():.3f} {iou.mean().item():.3f} {[f'{one:.2f}' for one in iou.tolist()]}")
                else:
                    shown.append((right, iou.mean(), iou))

    return run
