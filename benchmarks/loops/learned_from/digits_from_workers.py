"""Pictures of a DataLoader with two workers, loss and accuracy added up as numbers; without, on the device, pinned on CUDA."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(37)
    side, channels, batch = (12, 8, 16) if device.type == "ocl" else (64, 32, 128)
    pictures = torch.utils.data.TensorDataset(
        torch.randn(64 * batch, 1, side, side), torch.randint(0, 10, (64 * batch,))
    )
    pins = device.type == "cuda"  # elsewhere both versions go through one loader
    loaders = [
        torch.utils.data.DataLoader(
            pictures, batch, shuffle=True, num_workers=2, persistent_workers=True, pin_memory=pinned
        )
        for pinned in ([False, True] if pins else [False])
    ]
    net = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(16 * channels, 10),
    ).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    batches: list[Any] = [iter(()) for _ in loaders]
    total = right = 0.0

    def run(reads: bool) -> None:
        nonlocal total, right
        pinned = pins and not reads
        found = next(batches[pinned], None)
        if found is None:
            batches[pinned] = iter(loaders[pinned])
            found = next(batches[pinned])
        x, y = (part.to(device, non_blocking=pinned) for part in found)
        optimizer.zero_grad()
        out = net(x)
        loss = functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        hits = (out.argmax(1) == y).sum()
        total = total + (loss.item() if reads else loss.detach())
        right = right + (hits.item() if reads else hits)

    return run
