"""A policy that keeps an average of itself, rewards in a buffer, statistics that run along."""

import copy

import torch
from torch import nn


class Meter:
    """Adds up."""

    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, number=1):
        self.sum += value * number
        self.count += number


device = torch.device("cuda")
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 3)).to(device)
average = copy.deepcopy(policy)
optimizer = torch.optim.AdamW(policy.parameters(), 5e-3)
mean = torch.zeros(5, device=device)
rewards = torch.zeros(8, device=device)
of_loss, of_entropy = Meter(), Meter()
largest = 0.0
for step in range(16):
    state = torch.randn(32, 5, device=device)
    mean.mul_(0.9).add_(state.mean(0), alpha=0.1)
    state = state - mean
    rewards[step % 8] = state[:, 0].sum()
    advantage = state.sum(1, keepdim=True)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    logits = policy(state)
    chances = logits.log_softmax(1)
    action = torch.multinomial(chances.exp().detach(), 1)
    entropy = -(chances.exp() * chances).sum(1).mean()
    loss = -(chances.gather(1, action) * advantage).mean() - 0.01 * entropy
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    for p in policy.parameters():
        p.grad.clamp_(-0.5, 0.5)
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(policy.parameters(), average.parameters()):
            q.mul_(0.95).add_(p, alpha=0.05)
    of_loss.update(loss.item(), 32)
    of_entropy.update(entropy.item())
    largest = max(largest, max(p.grad.abs().max().item() for p in policy.parameters()))
    kept = int((action == 0).sum())
    if torch.isnan(loss):
        raise SystemExit("NaN")
