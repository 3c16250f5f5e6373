"""Work of the host in Python that no launch needs, or not in that way; left out, or done by numpy."""

from __future__ import annotations

import json
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from changed_loops.steps import Changed, Step, supervised


def logged(device: torch.device, changed: bool) -> Step:
    """A classifier that writes a line of JSON with everything it knows of its parameters in each step; none."""
    net = nn.Sequential(
        *(layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.ReLU())), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, labels = torch.randn(512, 512, device=device), torch.randint(0, 10, (512,), device=device)
    log: list[str] = []

    train = supervised(net, optimizer, lambda: (x, labels))

    def step() -> object:
        loss = train()
        if not changed:
            shapes = {name: list(p.shape) for name, p in net.named_parameters()}
            log.append(
                json.dumps({"step": len(log), "shapes": shapes, "groups": [len(g) for g in optimizer.param_groups]})
            )
            log[:] = [json.dumps(json.loads(line), sort_keys=True) for line in log[-12:]]
        return loss

    return step


def replay_memory(device: torch.device, changed: bool) -> Step:
    """PyTorch's tutorial of DQN: a memory of tuples, drawn from and joined in Python; rings of numpy, indexed."""
    net = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    rng = np.random.default_rng(0)
    states, actions = rng.random((4096, 8), np.float32), rng.integers(0, 4, (4096, 1))
    rewards = rng.random(4096, np.float32)
    memory = [(states[n].tolist(), actions[n].tolist(), float(rewards[n])) for n in range(4096)]

    def step() -> object:
        if changed:
            of = rng.integers(0, 4096, 256)
            drawn = torch.from_numpy(states[of]), torch.from_numpy(actions[of]), torch.from_numpy(rewards[of])
        else:
            state, action, reward = zip(*random.sample(memory, 256), strict=True)
            drawn = torch.tensor(state), torch.tensor(action), torch.tensor(reward)
        state, action, reward = (one.to(device) for one in drawn)
        loss = F.smooth_l1_loss(net(state).gather(1, action).squeeze(1), reward)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


ROW = "own work"
LOOPS = {
    "classifier that logs": Changed("no log", ROW, logged),
    "DQN, memory of tuples": Changed("numpy", ROW, replay_memory),
}
