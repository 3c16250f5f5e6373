"""A policy gradient: 32 moves in a simulator of numpy, each with action, value and log-probability read; then an update.

Fixed: the simulator needs the action, which is read; values and log-probabilities stay on the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

MOVES = 32


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    envs, width = (64, 512) if device.type == "cuda" else (8, 48)
    body = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()).to(device)
    policy, critic = nn.Linear(width, 4).to(device), nn.Linear(width, 1).to(device)
    parameters = [*body.parameters(), *policy.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4)
    moves = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    state = np.zeros((envs, 8), dtype=np.float32)

    def simulate(action: np.ndarray) -> Any:
        nonlocal state
        state = 0.9 * state + 0.1 * moves[action]
        return -np.square(state).sum(1)

    def act() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        seen = torch.from_numpy(state).to(device)
        with torch.no_grad():
            hidden = body(seen)
            logp = policy(hidden).log_softmax(-1)
            noise = -torch.log(-torch.log(torch.rand(envs, 4, device=device).clamp(1e-6, 1 - 1e-6)))
            action = (logp + noise).argmax(-1)
            return seen, action, logp.gather(1, action[:, None])[:, 0], critic(hidden)[:, 0]

    def returns(rewards: list[np.ndarray]) -> torch.Tensor:
        total, found = np.zeros(envs, dtype=np.float32), []
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            found.append(total)
        return torch.from_numpy(np.stack(found[::-1]).astype(np.float32)).to(device)

    def update(
        seen: torch.Tensor, action: torch.Tensor, old: torch.Tensor, value: torch.Tensor, target: torch.Tensor
    ) -> None:
        advantage = (target - value).flatten()
        for _ in range(4):
            hidden = body(seen.flatten(0, 1))
            logp = policy(hidden).log_softmax(-1).gather(1, action.flatten()[:, None])[:, 0]
            ratio = (logp - old.flatten()).exp()
            gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            off = (critic(hidden)[:, 0] - target.flatten()).square().mean()
            optimizer.zero_grad()
            (0.5 * off - gain).backward()
            optimizer.step()

    def as_written() -> None:
        states, actions, logps, values, rewards = [], [], [], [], []
        for _ in range(MOVES):
            seen, action, logp, value = act()
            actions.append(action.cpu().numpy())
            logps.append(logp.cpu().numpy())
            values.append(value.cpu().numpy())
            states.append(seen)
            rewards.append(simulate(actions[-1]))
        update(
            torch.stack(states),
            torch.from_numpy(np.stack(actions)).to(device),
            torch.from_numpy(np.stack(logps)).to(device),
            torch.from_numpy(np.stack(values)).to(device),
            returns(rewards),
        )

    def fixed() -> None:
        states, actions, logps, values, rewards = [], [], [], [], []
        for _ in range(MOVES):
            seen, action, logp, value = act()
            actions.append(action)
            logps.append(logp)
            values.append(value)
            states.append(seen)
            rewards.append(simulate(action.cpu().numpy()))
        update(torch.stack(states), torch.stack(actions), torch.stack(logps), torch.stack(values), returns(rewards))

    return lambda written: as_written() if written else fixed()
