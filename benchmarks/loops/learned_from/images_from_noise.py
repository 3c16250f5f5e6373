"""A variational autoencoder, whose loss and both of its parts are smoothed for a plot as numbers; without, as tensors."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(97)
    batch, width, latent = 2 * sized(device, 24), sized(device, 40), 16
    encoder = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 2 * latent)).to(device)
    decoder = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, 256)).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    images = torch.rand(4, batch, 256).to(device)
    noise = torch.randn(batch, latent).to(device)
    smooth: dict[bool, list[Any]] = {True: [0.0] * 3, False: [0.0] * 3}
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        x = images[count % 4]
        count += 1
        mean, spread = encoder(x).chunk(2, 1)
        made = decoder(mean + noise * (0.5 * spread).exp())
        likeness = nn.functional.binary_cross_entropy_with_logits(made, x, reduction="sum")
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum()
        loss = likeness + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        parts = [p.item() if reads else p.detach() for p in (loss, likeness, divergence)]
        smooth[reads] = [0.98 * old + 0.02 * new for old, new in zip(smooth[reads], parts, strict=True)]

    return run
