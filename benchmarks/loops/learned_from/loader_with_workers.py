"""Batches from a loader with two workers; the loss and the share of right answers are shown every step."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(16)
    width, inner, batch = sized(device, 64), sized(device, 192), sized(device, 32)
    data = torch.utils.data.TensorDataset(torch.randn(batch * 64, width), torch.randint(0, 10, (batch * 64,)))
    loader = torch.utils.data.DataLoader(
        data, batch, num_workers=2, persistent_workers=True, pin_memory=device.type == "cuda"
    )
    net = nn.Sequential(
        nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, 10)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    batches: list[Any] = []

    def endless() -> Any:
        while True:
            yield from loader

    source = endless()

    def run(reads: bool) -> None:
        x, y = (t.to(device, non_blocking=True) for t in next(source))
        optimizer.zero_grad()
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        right = (out.argmax(1) == y).float().mean()
        if reads:
            batches.append(f"{loss.item():.3f} {right.item():.1%}")
            batches.clear()

    return run
