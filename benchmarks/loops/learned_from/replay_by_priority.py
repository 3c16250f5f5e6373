"""Q-learning with priorities: what each transition was wrong by comes down, for the host to draw the next ones by."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    import numpy as np

    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    width, inner, batch, actions, held = 32, sized(device, 160), sized(device, 64), 8, 20000
    seen = torch.randn(held, width)
    later, gained = torch.randn(held, width), torch.randn(held)
    taken, over = torch.randint(0, actions, (held, 1)), (torch.rand(held) < 0.02).float()

    def network() -> Any:
        layers = nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, actions)
        return nn.Sequential(*layers).to(device)

    online, target = network(), network()
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-4)
    priorities = np.ones(held)
    earlier = np.abs(random.standard_normal(batch))
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        count += 1
        sums = np.cumsum(priorities)
        rows = np.searchsorted(sums, random.random(batch) * sums[-1]).clip(0, held - 1)
        weights = (held * priorities[rows] / sums[-1]) ** -0.4
        chosen = torch.from_numpy(rows)
        given: tuple[Any, ...] = (seen[chosen], taken[chosen], gained[chosen], later[chosen], over[chosen])
        given = (*given, torch.from_numpy(weights / weights.max()).float())
        if reads or device.type != "cuda":
            state, action, gain, after, done, weight = (part.to(device) for part in given)
        else:
            state, action, gain, after, done, weight = (
                part.pin_memory().to(device, non_blocking=True) for part in given
            )
        with torch.no_grad():
            best = online(after).argmax(1, keepdim=True)
            wanted = gain + 0.99 * (1 - done) * target(after).gather(1, best)[:, 0]
        wrong = online(state).gather(1, action)[:, 0] - wanted
        loss = (weight * functional.huber_loss(wrong, torch.zeros_like(wrong), reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        off = wrong.detach().abs().cpu().numpy() if reads else earlier
        priorities[rows] = (off + 1e-5) ** 0.6
        if reads and count % 5 == 0:
            f"{loss.item():.4f}"
        if count % 20 == 0:
            target.load_state_dict(online.state_dict())

    return run
