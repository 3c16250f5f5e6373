"""Training for eight bits: observers read the least and greatest of each layer's input and weight; without, as tensors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    batch, width, depth, classes = (4096, 1024, 8, 100) if device.type == "cuda" else (64, 48, 8, 10)

    def rounded(x: Any, low: Any, high: Any) -> Any:
        scale = (high - low) / 255
        with torch.no_grad():
            whole = ((x - low) / scale).round().clamp(0, 255) * scale + low
        return x + (whole - x).detach()  # its slope is that of x

    class Observed(nn.Linear):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self, into: int, out: int) -> None:
            super().__init__(into, out)
            self.usual: dict[bool, tuple[Any, Any]] = {}  # as numbers, and as tensors

        def forward(self, x: Any) -> Any:
            ranges = [(part.detach().min(), part.detach().max()) for part in (x, self.weight)]
            if asked:
                ranges = [(low.item(), high.item()) for low, high in ranges]
            usual = zip(self.usual.get(asked, ranges[0]), ranges[0], strict=True)
            self.usual[asked] = low, high = tuple(0.99 * old + 0.01 * new for old, new in usual)
            return functional.linear(rounded(x, low, high), rounded(self.weight, *ranges[1]), self.bias)

    sizes = [width] * depth + [classes]
    layers = [Observed(into, out) for into, out in pairwise(sizes)]
    parts = [part for layer in layers for part in (nn.LayerNorm(width), layer, nn.ReLU())]
    network = nn.Sequential(*parts[:-1])
    network.to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(batch, width).to(device), torch.randint(0, classes, (batch,)).to(device)) for _ in range(3)]
    asked, count = True, 0

    def run(reads: bool) -> None:
        nonlocal asked, count
        asked = reads
        x, wanted = batches[count % len(batches)]
        count += 1
        loss = functional.cross_entropy(network(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
