"""A thread cuts, turns, mixes photographs, copied from ordinary memory; two meters are read; without, pinned, and kept."""

from __future__ import annotations

import threading
from queue import Queue
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, side, channels, kinds = (32, 112, 96, 100) if large else (8, 24, 8, 10)
    photographs = torch.randint(0, 256, (6 * batch, 3, side + 8, side + 8), dtype=torch.uint8)
    labels = torch.randint(0, kinds, (6 * batch,))

    class Prepared:
        """Batches that a thread makes ahead, three at most."""

        def __init__(self, pin: bool) -> None:
            self.pin, self.dice = pin, torch.Generator().manual_seed(1)
            self.ready: Queue[list[Any]] = Queue(3)
            threading.Thread(target=self.make, daemon=True).start()

        def number(self, most: int) -> int:
            return int(torch.randint(0, most, (), generator=self.dice))

        def make(self) -> None:
            while True:
                rows = torch.randint(0, len(photographs), (batch,), generator=self.dice)
                top, left = self.number(8), self.number(8)
                x = photographs[rows, :, top : top + side, left : left + side]
                if self.number(2):
                    x = x.flip(3)
                x = x.float().sub_(127.5).div_(64.0)
                share = 0.5 + self.number(50) / 100
                x = x.lerp_(x.flip(0), 1 - share)
                y = functional.one_hot(labels[rows], kinds).float()
                y = y.lerp_(y.flip(0), 1 - share)
                self.ready.put([part.pin_memory() for part in (x, y)] if self.pin else [x, y])

    class Residual(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
            self.before, self.after = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            return functional.relu(x + self.after(self.second(functional.relu(self.before(self.first(x))))))

    network = nn.Sequential(
        nn.Conv2d(3, channels, 5, stride=2, padding=2),
        nn.ReLU(),
        Residual(),
        Residual(),
        nn.MaxPool2d(2),
        Residual(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, kinds),
    ).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    made: dict[bool, Prepared] = {}
    meters: dict[bool, dict[str, Any]] = {kept: {"loss": 0.0, "right": 0.0} for kept in (True, False)}

    def run(reads: bool) -> None:
        if reads not in made:
            made[reads] = Prepared(pin=large and not reads)
        x, y = (part.to(device, non_blocking=not reads) for part in made[reads].ready.get())
        logits = network(x)
        loss = -(y * logits.log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = (logits.argmax(1) == y.argmax(1)).float().mean()
        for name, value in (("loss", loss.detach()), ("right", right)):
            meters[reads][name] = 0.95 * meters[reads][name] + 0.05 * (value.item() if reads else value)

    return run
