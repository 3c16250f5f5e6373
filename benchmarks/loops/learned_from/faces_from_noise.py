"""Two networks by two optimizers: how sure the one is says how often pictures are changed; a penalty in each fourth step."""

from __future__ import annotations

import copy
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    batch, side, channels, latent = (64, 64, 48, 128) if device.type == "cuda" else (4, 16, 6, 16)
    maker = nn.Sequential(
        nn.Linear(latent, 2 * channels * (side // 4) ** 2),
        nn.Unflatten(1, (2 * channels, side // 4, side // 4)),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(2 * channels, channels, 3, padding=1),
        nn.LeakyReLU(0.2),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(channels, 3, 3, padding=1),
        nn.Tanh(),
    ).to(device)
    judge = nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(2 * channels * (side // 4) ** 2, 1),
    ).to(device)
    slow = copy.deepcopy(maker).requires_grad_(False)
    making = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.0, 0.99))
    judging = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.0, 0.99))
    faces = [(torch.rand(batch, 3, side, side) * 2 - 1).to(device) for _ in range(4)]
    noises = [torch.randn(batch, latent).to(device) for _ in range(5)]
    dice = [torch.rand(2, batch, 1, 1, 1).to(device) for _ in range(3)]
    often: dict[bool, Any] = {True: 0.1, False: torch.tensor(0.1).to(device)}
    logged: dict[str, Any] = {}
    count = 0

    def changed(pictures: Any, often: Any) -> Any:
        turn, dim = dice[count % len(dice)]
        pictures = torch.where(turn < often, pictures.flip(3), pictures)
        return torch.where(dim < often, pictures * 0.6, pictures)

    def run(reads: bool) -> None:
        nonlocal count
        real, noise = faces[count % len(faces)], noises[count % len(noises)]
        count += 1
        chance = often[reads]
        told = {}

        judge.requires_grad_(False)
        made = maker(noise)
        loss = functional.softplus(-judge(changed(made, chance))).mean()
        making.zero_grad()
        loss.backward()
        making.step()
        told["maker"] = loss.item() if reads else loss.detach()

        judge.requires_grad_(True)
        real_said = judge(changed(real, chance))
        loss = (
            functional.softplus(-real_said).mean() + functional.softplus(judge(changed(made.detach(), chance))).mean()
        )
        judging.zero_grad()
        loss.backward()
        told["judge"] = loss.item() if reads else loss.detach()
        if count % 4 == 0:
            real = real.clone().requires_grad_()
            (slopes,) = torch.autograd.grad(judge(real).sum(), real, create_graph=True)
            penalty = slopes.square().sum((1, 2, 3)).mean()
            (penalty * (4 * 0.5)).backward()
            told["penalty"] = penalty.item() if reads else penalty.detach()
        judging.step()

        sure = real_said.detach().sign().mean()
        if reads:
            told["sure"] = sure.item()
            often[reads] = min(max(chance + (0.01 if told["sure"] > 0.6 else -0.01), 0.0), 0.8)
        else:
            told["sure"] = sure
            often[reads] = (chance + (sure > 0.6) * 0.02 - 0.01).clamp(0.0, 0.8)
        with torch.no_grad():
            for old, new in zip(slow.parameters(), maker.parameters(), strict=True):
                old.lerp_(new, 0.01)
        logged.update(told)

    return run
