"""A policy whose actions go to the host sixteen times a step, then a learning step."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    width, inner, batch = sized(device, 64), sized(device, 256), sized(device, 32)
    net = nn.Sequential(nn.Linear(width, inner), nn.Tanh(), nn.Linear(inner, inner), nn.Tanh(), nn.Linear(inner, 8)).to(
        device
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    start, drift = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)

    def run(reads: bool) -> None:
        state, kept = start, []
        with torch.no_grad():
            for _ in range(16):
                action = net(state).argmax(1)
                kept.append(action.cpu() if reads else action)
                work(0.1)
                state = state * 0.9 + drift * 0.1
        found = net(start)
        loss = functional.mse_loss(found, torch.zeros_like(found))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
