"""Two networks in turn, whose losses are shown, and how sure the one is of the other; new images go up for each step."""

from __future__ import annotations

from typing import Any

from loops import Step, work


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, side, channels, noise = (128, 64, 32, 100) if large else (8, 16, 8, 24)
    maker = nn.Sequential(
        nn.Linear(noise, channels * (side // 4) ** 2),
        nn.Unflatten(1, (channels, side // 4, side // 4)),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(channels, 3, 3, padding=1),
        nn.Tanh(),
    ).to(device)
    judge = nn.Sequential(
        nn.Conv2d(3, channels, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(channels, channels, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(channels * (side // 4) ** 2, 1),
    ).to(device)
    for_maker, for_judge = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (maker, judge))
    images = [torch.rand(batch, 3, side, side) for _ in range(3)]
    pinned = [image.pin_memory() if large else image for image in images]
    drawn = [torch.randn(batch, noise).to(device) for _ in range(3)]
    yes, no = torch.ones(batch, 1).to(device), torch.zeros(batch, 1).to(device)
    loss_of = functional.binary_cross_entropy_with_logits
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        real = images[count % 3].to(device) if reads else pinned[count % 3].to(device, non_blocking=True)
        fake = maker(drawn[count % 3])
        count += 1
        for_judge.zero_grad()
        on_real, on_fake = judge(real), judge(fake.detach())
        of_judge = loss_of(on_real, yes) + loss_of(on_fake, no)
        of_judge.backward()
        sure = on_real.sigmoid().mean(), on_fake.sigmoid().mean()
        if reads:
            sure = sure[0].item(), sure[1].item()
        for_judge.step()
        for_maker.zero_grad()
        of_maker = loss_of(judge(fake), yes)
        of_maker.backward()
        for_maker.step()
        if reads:
            f"{of_judge.item():.4f} {of_maker.item():.4f} {sure[0]:.3f} {sure[1]:.3f}"
        work(1 if large else 3)  # the loader's

    return run
