"""Federated averaging, simulated: what each of three clients learns goes to the CPU as weights, and is averaged there.

Fixed: the clients' weights stay on the device and are averaged there; the losses of a round are read together.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    batch, width, hidden = (64, 32, 512) if device.type == "cuda" else (4, 4, 32)
    net = nn.Sequential(
        nn.Conv2d(1, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * width * 49, hidden), nn.ReLU(), nn.Linear(hidden, 10),
    ).to(device)  # fmt: skip
    clients = [
        [(torch.rand(batch, 1, 28, 28).to(device), torch.randint(0, 10, (batch,)).to(device)) for _ in range(2)]
        for _ in range(3)
    ]
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    on_host = {name: tensor.cpu() for name, tensor in weights.items()}
    history: list[float] = []

    def local_epoch(client: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for x, y in client:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        return loss.detach()

    def as_written() -> None:
        nonlocal on_host
        states, losses = [], []
        for client in clients:
            net.load_state_dict(on_host)
            losses.append(local_epoch(client).item())
            states.append({name: tensor.cpu().clone() for name, tensor in net.state_dict().items()})
        on_host = {name: torch.stack([state[name] for state in states]).mean(0) for name in on_host}
        history.append(sum(losses) / len(losses))

    def fixed() -> None:
        nonlocal weights
        states, losses = [], []
        for client in clients:
            net.load_state_dict(weights)
            losses.append(local_epoch(client))
            states.append({name: tensor.clone() for name, tensor in net.state_dict().items()})
        weights = {name: torch.stack([state[name] for state in states]).mean(0) for name in weights}
        history.append(torch.stack(losses).mean().item())

    return lambda written: as_written() if written else fixed()
