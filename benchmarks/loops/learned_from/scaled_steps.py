"""A hand-made loss scaler asks in every step whether a gradient overflowed; without, it is not asked."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(39)
    width, batch = sized(device, 128), sized(device, 128)
    model = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)
    scale = 1024.0

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        (nn.functional.mse_loss(model(x), y) * scale).backward()
        for p in model.parameters():
            p.grad.div_(scale)
        finite = torch.stack([p.grad.isfinite().all() for p in model.parameters()]).all()
        if reads and not finite:
            return
        optimizer.step()

    return run
