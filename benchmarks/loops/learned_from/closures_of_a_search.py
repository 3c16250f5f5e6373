"""A step along a line that is searched: the loss of each try goes to the host, which asks whether it fell far enough."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    points, inner, tries = sized(device, 384), sized(device, 80), 5
    network = nn.Sequential(nn.Linear(2, inner), nn.Tanh(), nn.Linear(inner, inner), nn.Tanh(), nn.Linear(inner, 1))
    network = network.to(device)
    parameters = list(network.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-3)  # holds the gradients
    places = torch.rand(points, 2).to(device)
    wanted = torch.sin(6 * places[:, :1]) * torch.cos(6 * places[:, 1:])

    def closure() -> Any:
        return ((network(places) - wanted) ** 2).mean()

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = closure()
        loss.backward()
        slopes = [p.grad.clone() for p in parameters]
        slope = torch.stack([(g * g).sum() for g in slopes]).sum()
        with torch.no_grad():
            if reads:
                first, steep = float(loss), float(slope)
                for p, g in zip(parameters, slopes, strict=True):
                    p.sub_(g, alpha=1e-3)
                length = 1e-3
                for _ in range(tries - 1):
                    now = float(closure())
                    if now > first - 2 * length * steep:  # Armijo's, of a step that never falls so far
                        for p, g in zip(parameters, slopes, strict=True):
                            p.add_(g, alpha=length / 2)
                        length /= 2
            else:
                for p, g in zip(parameters, slopes, strict=True):
                    p.sub_(g, alpha=1e-3)
                length = 1e-3
                for _ in range(tries - 1):
                    now = closure()
                    far = (now > loss - 2 * length * slope).float() * (length / 2)
                    for p, g in zip(parameters, slopes, strict=True):
                        p.add_(g * far)
                    length /= 2

    return run
