"""A generator and a critic with an optimizer each, whose four numbers go to the progress bar; without, to a list."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(35)
    noise, width, batch = sized(device, 16), sized(device, 96), sized(device, 48)
    generator = nn.Sequential(nn.Linear(noise, width), nn.LeakyReLU(0.2), nn.Linear(width, width)).to(device)
    critic = nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1)).to(device)
    one = torch.optim.RMSprop(generator.parameters(), lr=1e-4)
    other = torch.optim.RMSprop(critic.parameters(), lr=1e-4)
    real, history = torch.randn(batch, width).to(device), list[Any]()

    def run(reads: bool) -> None:
        other.zero_grad()
        fake = generator(torch.randn(batch, noise, device=device))
        true_score, false_score = critic(real).mean(), critic(fake.detach()).mean()
        (false_score - true_score).backward()
        other.step()
        one.zero_grad()
        loss = -critic(fake).mean()
        loss.backward()
        one.step()
        numbers = [true_score.detach(), false_score.detach(), loss.detach()]
        history[:] = [x.item() for x in numbers] if reads else numbers

    return run
