"""A layer is applied until its output stays the same, which a `while` asks each time; without, as often, unasked."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(63)
    width, batch = sized(device, 48), sized(device, 24)
    inner, outer = nn.Linear(width, width).to(device), nn.Linear(width, width).to(device)
    head = nn.Linear(width, 10).to(device)
    with torch.no_grad():
        inner.weight.mul_(0.5)
    optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters(), *head.parameters()], lr=1e-4)
    x, y = torch.randn(batch, width).to(device), torch.randint(0, 10, (batch,)).to(device)
    times = 0

    def run(reads: bool) -> None:
        nonlocal times
        injected = outer(x)
        with torch.no_grad():
            state, count = torch.zeros_like(injected), 0
            while True:
                new = torch.tanh(inner(state) + injected)
                residual = (new - state).norm() / (new.norm() + 1e-8)
                state, count = new, count + 1
                if (reads and (residual < 1e-3 or count >= 30)) or (not reads and count >= times):
                    break
            if reads:
                times = count
        loss = functional.cross_entropy(head(torch.tanh(inner(state) + injected)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
