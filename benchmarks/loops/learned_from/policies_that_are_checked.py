"""REINFORCE: a policy called where its distribution is made, which checks logits and what is scored; without, it does not."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(73)
    width, worlds, seen, acts, horizon = sized(device, 64), sized(device, 64), 8, 4, 4

    def block() -> list[Any]:
        return [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]

    policy = nn.Sequential(
        nn.Linear(seen, width), *(layer for _ in range(5) for layer in block()), nn.Linear(width, acts)
    ).to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    pushes = (0.1 * torch.randn(acts, seen)).to(device)

    def run(reads: bool) -> None:
        state = torch.randn(worlds, seen, device=device)
        scored, rewards = [], []
        for _ in range(horizon):
            chosen = torch.distributions.Categorical(logits=policy(state), validate_args=reads)
            action = chosen.sample()
            scored.append(chosen.log_prob(action))
            state = torch.tanh(0.9 * state + pushes[action])
            rewards.append(-state.square().mean(dim=1))
        future, returns = torch.zeros(worlds, device=device), []
        for reward in reversed(rewards):
            future = reward + 0.99 * future
            returns.append(future)
        gain = torch.stack(returns[::-1])
        loss = -(torch.stack(scored) * (gain - gain.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
