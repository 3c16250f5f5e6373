"""Two networks with an optimizer each; both losses and the mean value are logged every step."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(14)
    seen, inner, batch = sized(device, 48), sized(device, 256), sized(device, 96)
    actor = nn.Sequential(
        nn.Linear(seen, inner), nn.Tanh(), nn.Linear(inner, inner), nn.Tanh(), nn.Linear(inner, 6)
    ).to(device)
    critic = nn.Sequential(nn.Linear(seen, inner), nn.Tanh(), nn.Linear(inner, 1)).to(device)
    act = torch.optim.Adam(actor.parameters(), lr=1e-4)
    judge = torch.optim.SGD(critic.parameters(), lr=1e-3)
    states, returns = torch.randn(batch, seen).to(device), torch.randn(batch).to(device)
    taken = torch.randint(0, 6, (batch, 1)).to(device)
    log: list[Any] = []

    def run(reads: bool) -> None:
        value = critic(states).squeeze(1)
        worth = (returns - value).square().mean()
        judge.zero_grad()
        worth.backward()
        judge.step()
        if reads:
            log.append(worth.item())
        gain = (returns - value).detach()
        chance = actor(states).log_softmax(-1).gather(1, taken).squeeze(1)
        loss = -(chance * gain).mean()
        act.zero_grad()
        loss.backward()
        act.step()
        mean = value.detach().mean()
        if reads:
            log.extend((loss.item(), float(mean)))
        work(2)
        log.clear()

    return run
