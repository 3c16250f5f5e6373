"""A denoising autoencoder fed from a list of numpy-made batches by `.to(device)`; without, from pinned ones beside the work."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(31)
    width, inner, batch = sized(device, 256), sized(device, 64), sized(device, 96)
    model = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width), nn.Sigmoid()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    clean = [torch.rand(batch, width) for _ in range(4)]
    pinned = [x.pin_memory() for x in clean] if device.type == "cuda" else clean
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        data = clean[count % 4].to(device) if reads else pinned[count % 4].to(device, non_blocking=True)
        noisy = data + 0.1 * torch.randn_like(data)
        optimizer.zero_grad()
        loss = criterion(model(noisy), data)
        loss.backward()
        optimizer.step()

    return run
