"""Hooks listen to the backward pass: in each of twelve layers the size of its gradient is asked, while it goes through."""

from __future__ import annotations

import math
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    batch, width, classes = (2048, 768, 100) if device.type == "cuda" else (64, 64, 10)

    class Block(nn.Module):  # type: ignore[name-defined]  # torch is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            return x + functional.gelu(self.linear(self.norm(x)))

    blocks = [Block() for _ in range(12)]
    network = nn.Sequential(nn.Linear(width, width), *blocks, nn.Linear(width, classes)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    batches = [(torch.randn(batch, width).to(device), torch.randint(0, classes, (batch,)).to(device)) for _ in range(4)]
    smooth: dict[str, float] = {}
    heard: dict[str, Any] = {}
    warnings: list[str] = []
    asked, count = True, 0

    def listen(name: str, block: Any) -> None:
        def hook(_module: Any, _inputs: Any, outputs: Any) -> None:
            size = outputs[0].norm()
            if not asked:
                heard[name] = size
                return
            heard[name] = number = size.item()
            if math.isnan(number) or number > 100 * smooth.get(name, number):
                warnings.append(f"{name}: {number:.3g} in step {count}")
            smooth[name] = 0.9 * smooth.get(name, number) + 0.1 * number

        block.register_full_backward_hook(hook)

    for number, block in enumerate(blocks):
        listen(f"block {number}", block)

    def run(reads: bool) -> None:
        nonlocal asked, count
        asked = reads
        x, y = batches[count % len(batches)]
        count += 1
        loss = functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
