"""A radiance field is asked at the samples of rays that a grid calls occupied, one of fourteen; without, at all, weighted."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(73)
    rays, samples, width, cells = 4 * sized(device, 64), sized(device, 8), sized(device, 32), 32
    field = nn.Sequential(
        nn.Linear(27, width),
        nn.ReLU(),
        *[layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())],
        nn.Linear(width, 4),
    ).to(device)
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-4, eps=1e-15)
    occupied = (torch.rand(cells, cells, cells) < 0.07).to(device)
    origins, towards = (torch.rand(4, rays, 1, 3) * 0.5).to(device), (torch.rand(4, rays, 1, 3) * 0.5).to(device)
    colours = torch.rand(4, rays, 3).to(device)
    along = torch.linspace(0, 0.999, samples)[:, None].to(device)
    octaves = (2.0 ** torch.arange(4)).to(device)
    count = 0

    def encoded(points: Any) -> Any:
        waves = (points[..., None] * octaves).flatten(-2)
        return torch.cat([points, waves.sin(), waves.cos()], -1)

    def run(reads: bool) -> None:
        nonlocal count
        ray = count % 4
        count += 1
        points = (origins[ray] + towards[ray] * along).reshape(-1, 3)
        x, y, z = (points * cells).long().clamp_(0, cells - 1).unbind(-1)
        mask = occupied[x, y, z]
        if reads:
            density = torch.zeros(len(points), device=device)
            colour = torch.zeros(len(points), 3, device=device)
            found = field(encoded(points[mask]))
            density[mask] = functional.softplus(found[:, 0])
            colour[mask] = found[:, 1:].sigmoid()
        else:
            found = field(encoded(points))
            density = functional.softplus(found[:, 0]) * mask
            colour = found[:, 1:].sigmoid() * mask[:, None]
        depth = density.view(rays, samples) / samples
        passed = torch.exp(depth - depth.cumsum(1))
        weight = passed * (1 - torch.exp(-depth))
        pixel = (weight[..., None] * colour.view(rays, samples, 3)).sum(1)
        loss = functional.mse_loss(pixel, colours[ray])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
