"""Three rounds over a batch: each asks whether the policy has moved too far, and logs three numbers; without, nobody asks."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(92)
    batch, width, seen, actions = 4 * sized(device, 32), sized(device, 32), 24, 6
    policy = nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, actions)).to(device)
    value = nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-5)
    states = torch.randn(batch, seen).to(device)
    taken = torch.randint(0, actions, (batch, 1)).to(device)
    advantage, returns = torch.randn(batch).to(device), torch.randn(batch).to(device)
    with torch.no_grad():
        before = policy(states).log_softmax(1).gather(1, taken).squeeze(1)
    log: list[Any] = []

    def run(reads: bool) -> None:
        log.clear()
        for _ in range(3):
            chances = policy(states).log_softmax(1)
            now = chances.gather(1, taken).squeeze(1)
            ratio = (now - before).exp()
            clipped = ratio.clamp(0.8, 1.2)
            objective = -torch.min(ratio * advantage, clipped * advantage).mean()
            entropy = -(chances.exp() * chances).sum(1).mean()
            of_value = nn.functional.mse_loss(value(states).squeeze(1), returns)
            moved = (before - now).mean().detach()
            if reads and moved.item() > 100.0:
                break
            optimizer.zero_grad()
            (objective + 0.5 * of_value - 0.01 * entropy).backward()
            optimizer.step()
            log.extend(x.item() if reads else x.detach() for x in (objective, of_value, entropy))

    return run
