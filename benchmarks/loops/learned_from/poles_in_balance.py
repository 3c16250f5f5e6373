"""Sixteen steps of many simulated poles: where one fell, an `if` puts it upright again; without, all by a where."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(54)
    poles, width = sized(device, 64), sized(device, 32)
    policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)).to(
        device
    )
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    state = torch.zeros(poles, 4).to(device)
    fresh = ((torch.rand(poles, 4) - 0.5) / 10).to(device)

    def moved(state: Any, force: Any) -> Any:
        """The pole after a fiftieth of a second, by the equations of Barto, Sutton and Anderson."""
        x, speed, angle, turning = state.unbind(1)
        sine, cosine = angle.sin(), angle.cos()
        push = (force + 0.05 * turning.square() * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine.square() / 1.1))
        speeds = speed + 0.02 * (push - 0.05 * turn * cosine / 1.1), turning + 0.02 * turn
        return torch.stack([x + 0.02 * speed, speeds[0], angle + 0.02 * turning, speeds[1]], 1)

    def run(reads: bool) -> None:
        nonlocal state
        states, actions, alive = [], [], []
        with torch.no_grad():
            for _ in range(16):
                logits = policy(state)
                action = (logits[:, 1] > logits[:, 0]).float()
                states.append(state)
                actions.append(action)
                state = moved(state, 20 * action - 10)
                done = (state[:, 2].abs() > 0.2) | (state[:, 0].abs() > 2.4)
                alive.append(~done)
                if not reads or done.any():
                    state = torch.where(done[:, None], fresh, state)
        returns = torch.stack(alive).float().flip(0).cumsum(0).flip(0)
        chances = policy(torch.cat(states)).log_softmax(1)
        taken = torch.where(torch.cat(actions) > 0, chances[:, 1], chances[:, 0])
        loss = -(taken * (returns - returns.mean()).flatten()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
