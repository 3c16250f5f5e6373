"""After each backward pass a dictionary of gradient norms by name, as for a dashboard; without, they stay tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(36)
    width, batch = sized(device, 64), sized(device, 64)
    blocks = [m for _ in range(6) for m in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
    model = nn.Sequential(*blocks, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    inputs, labels = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        norms = {name: p.grad.norm() for name, p in model.named_parameters()}
        if reads:
            norms = {name: norm.item() for name, norm in norms.items()}
        optimizer.step()

    return run
