"""Points of a laser on a grid: the pillars that hold any, one in eight, are looked up and put back; without, all of them."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    points, side, inner, channels = (60000, 128, 256, 64) if large else (600, 24, 48, 8)
    lift = nn.Sequential(nn.Linear(6, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, channels))
    body = nn.Sequential(
        nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()
    )
    head = nn.Conv2d(channels, 1, 1)
    network = nn.ModuleList([lift, body, head]).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    scenes = []
    for _ in range(5):
        seen = torch.randint(0, side * side, (side * side // 7,))  # some twice
        cell = seen[torch.randint(0, len(seen), (points,))]
        cloud = torch.cat(
            [torch.stack([cell // side, cell % side], 1) + torch.rand(points, 2), torch.rand(points, 2)], 1
        )
        scenes.append((cloud.to(device), (torch.rand(1, 1, side, side) < 0.02).float().to(device)))
    shown: list[Any] = []
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        cloud, wanted = scenes[count % len(scenes)]
        count += 1
        corner = cloud[:, :2].floor()
        cell = corner[:, 0].long() * side + corner[:, 1].long()
        within = torch.cat([cloud / side, cloud[:, :2] - corner - 0.5], 1)
        number = torch.zeros(side * side, device=device).index_add_(0, cell, torch.ones_like(within[:, 0]))
        pillars = torch.zeros(side * side, 6, device=device).index_add_(0, cell, within)
        pillars = pillars / number.clamp(min=1)[:, None]
        if reads:
            filled = number.nonzero()[:, 0]
            canvas = torch.zeros(side * side, channels, device=device)
            canvas[filled] = lift(pillars[filled])
        else:
            canvas = lift(pillars) * (number > 0)[:, None]
        grid = canvas.T.reshape(1, channels, side, side)
        loss = functional.binary_cross_entropy_with_logits(head(body(grid)), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(f"{len(filled)} pillars, {loss.item():.4f}" if reads else loss.detach())
        del shown[:-20]

    return run
