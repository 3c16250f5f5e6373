"""A decoder's pictures go to the host in every step, to be shown; without, the last of them stays on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(50)
    code, side, batch = sized(device, 16), sized(device, 8), sized(device, 4)
    decoder = nn.Sequential(nn.Linear(code, 2 * code), nn.ReLU(), nn.Linear(2 * code, side * side), nn.Sigmoid()).to(
        device
    )
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
    codes, pictures = torch.randn(batch, code).to(device), torch.rand(batch, side * side).to(device)
    shown: list[Any] = []

    def run(reads: bool) -> None:
        made = decoder(codes)
        loss = functional.mse_loss(made, pictures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown[:] = [made.detach().cpu().numpy()] if reads else [made.detach()]

    return run
