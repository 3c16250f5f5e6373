"""A running mean of the loss warns of spikes, three quantiles of the gradient are shown; without, both on the device."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(62)
    width, batch = sized(device, 40), sized(device, 48)
    net = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    x = torch.randn(batch, width).to(device)
    levels = torch.tensor([0.5, 0.9, 0.99]).to(device)
    average: Any = None
    shown: dict[str, Any] = {}

    def run(reads: bool) -> None:
        nonlocal average
        loss = functional.huber_loss(net(x), x)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        now = loss.item() if reads else loss.detach()
        average = now if average is None else 0.98 * average + 0.02 * now
        if reads and now > 3 * average:
            shown["spikes"] = shown.get("spikes", 0) + 1
        sizes = net[0].weight.grad.abs().flatten().sort().values
        ranks = (levels * (sizes.numel() - 1)).long()
        quantiles = sizes[ranks]
        shown["gradient"] = quantiles.tolist() if reads else quantiles
        optimizer.step()

    return run
