"""The sample: the loss as written has three waits, the one in fixed shapes none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    sys.path.insert(0, str(Path(__file__).parents[3] / "samples"))
    import segmentation as sample

    torch.manual_seed(0)
    net = sample.network().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    images, labels = next(
        iter(
            torch.utils.data.DataLoader(
                sample.crops(sized(device, 4), 64 if device.type != "cuda" else 256), batch_size=sized(device, 4)
            )
        )
    )
    images, labels = images.to(device), labels.to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = sample.loss_as_written if reads else sample.loss_in_fixed_shapes
        loss(net(images), labels).backward()
        optimizer.step()
        work(10)

    return run
