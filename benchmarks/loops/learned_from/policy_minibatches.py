"""PPO over a rollout in host memory: minibatches are uploaded, five values of each are logged, its KL may end the epoch."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    import numpy as np

    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    width, inner, rows, minibatches, actions = 48, sized(device, 128), sized(device, 128), 4, 6
    body = nn.Sequential(nn.Linear(width, inner), nn.Tanh(), nn.Linear(inner, inner), nn.Tanh()).to(device)
    actor, critic = nn.Linear(inner, actions).to(device), nn.Linear(inner, 1).to(device)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    size = rows * minibatches
    rollout: dict[str, Any] = {
        "seen": random.standard_normal((size, width)).astype(np.float32),
        "taken": random.integers(0, actions, size),
        "old": np.full(size, -np.log(actions), np.float32),
        "gains": random.standard_normal(size).astype(np.float32),
        "returns": random.standard_normal(size).astype(np.float32),
    }
    pinned = {name: torch.from_numpy(values).split(rows) for name, values in rollout.items()}
    if device.type == "cuda":
        pinned = {name: [part.pin_memory() for part in parts] for name, parts in pinned.items()}

    def run(reads: bool) -> None:
        logged: dict[str, list[Any]] = {"policy": [], "value": [], "entropy": [], "clipped": [], "kl": []}
        for number in range(minibatches):
            at = slice(number * rows, (number + 1) * rows)
            if reads:
                batch = {name: torch.tensor(values[at], device=device) for name, values in rollout.items()}
            else:
                batch = {name: parts[number].to(device, non_blocking=True) for name, parts in pinned.items()}
            hidden = body(batch["seen"])
            chances = actor(hidden).log_softmax(1)
            told = chances.gather(1, batch["taken"][:, None])[:, 0]
            gains = (batch["gains"] - batch["gains"].mean()) / (batch["gains"].std() + 1e-8)
            ratio = torch.exp(told - batch["old"])
            policy = -torch.min(gains * ratio, gains * ratio.clamp(0.8, 1.2)).mean()
            value = functional.mse_loss(critic(hidden)[:, 0], batch["returns"])
            entropy = -(chances.exp() * chances).sum(1).mean()
            loss = policy + 0.5 * value - 0.01 * entropy
            with torch.no_grad():
                kl = ((ratio - 1) - (told - batch["old"])).mean()
                clipped = ((ratio - 1).abs() > 0.2).float().mean()
            values = {"policy": policy, "value": value, "entropy": entropy, "clipped": clipped, "kl": kl}
            for name, one in values.items():
                logged[name].append(one.item() if reads else one.detach())
            if reads and logged["kl"][-1] > 1e3:
                break
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()

    return run
