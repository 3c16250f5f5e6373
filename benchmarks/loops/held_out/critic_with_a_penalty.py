"""A critic learns three times for each time its maker does, from ordinary memory, held back by the slope of its slopes."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, numbers, width, noise, rounds = (1024, 3072, 1024, 128, 3) if large else (24, 192, 48, 16, 3)
    maker = nn.Sequential(
        nn.Linear(noise, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, numbers), nn.Tanh()
    ).to(device)
    critic = nn.Sequential(
        nn.Linear(numbers, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1)
    ).to(device)
    for_maker, for_critic = (torch.optim.Adam(net.parameters(), lr=1e-4, betas=(0.0, 0.9)) for net in (maker, critic))
    images = [torch.rand(batch, numbers) * 2 - 1 for _ in range(5)]
    pinned = [image.pin_memory() if large else image for image in images]
    drawn = [torch.randn(batch, noise).to(device) for _ in range(4)]
    mixes = [torch.rand(batch, 1).to(device) for _ in range(3)]
    shown: list[Any] = []
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        for turn in range(rounds):
            number = count % len(images)
            count += 1
            real = images[number].to(device) if reads else pinned[number].to(device, non_blocking=True)
            with torch.no_grad():
                fake = maker(drawn[turn])
            between = (fake + mixes[turn] * (real - fake)).requires_grad_()
            (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            penalty = ((slope.square().sum(1) + 1e-12).sqrt() - 1).square().mean()
            apart = critic(real).mean() - critic(fake).mean()
            loss = 10 * penalty - apart
            for_critic.zero_grad()
            loss.backward()
            for_critic.step()
            shown.append((apart.item(), penalty.item()) if reads else (apart.detach(), penalty.detach()))
        for_maker.zero_grad()
        of_maker = -critic(maker(drawn[rounds])).mean()
        of_maker.backward()
        for_maker.step()
        shown.append(of_maker.item() if reads else of_maker.detach())
        del shown[:-20]

    return run
