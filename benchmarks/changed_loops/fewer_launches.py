"""A loop of Python over tensors, of which each is launched for; one call for all of them (`torch._foreach_*`)."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from changed_loops.steps import Changed, Step, images, supervised


def word_model(device: torch.device, changed: bool) -> Step:
    """The examples' `word_language_model`: an LSTM whose parameters are updated in a Python loop; `torch._foreach_add_`."""
    words, body, head = (
        nn.Embedding(5000, 200).to(device),
        nn.LSTM(200, 200, 2).to(device),
        nn.Linear(200, 5000).to(device),
    )
    extra = nn.ModuleList(nn.Linear(200, 200) for _ in range(12)).to(device)
    parameters = [*words.parameters(), *body.parameters(), *extra.parameters(), *head.parameters()]
    tokens, targets = (torch.randint(0, 5000, (35, 20), device=device) for _ in range(2))

    def step() -> object:
        for p in parameters:
            p.grad = None
        out, _ = body(words(tokens))
        for layer in extra:
            out = out + torch.tanh(layer(out))
        loss = F.cross_entropy(head(out).view(-1, 5000), targets.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.25)
        if changed:
            torch._foreach_add_([p.data for p in parameters], [p.grad for p in parameters], alpha=-1e-3)
        else:
            for p in parameters:
                p.data.add_(p.grad, alpha=-1e-3)
        return loss

    return step


def averaged(device: torch.device, changed: bool) -> Step:
    """torchvision's MobileNet, and an average of its weights that a Python loop keeps; `torch._foreach_lerp_`."""
    from torchvision.models import mobilenet_v2

    net = mobilenet_v2(num_classes=100).to(device)
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    train = supervised(net, optimizer, images(device, 32, 96, 100))
    pairs = list(zip(average.parameters(), net.parameters(), strict=True))

    def step() -> object:
        loss = train()
        with torch.no_grad():
            if changed:
                torch._foreach_lerp_([a for a, _ in pairs], [p for _, p in pairs], 0.001)
            else:
                for a, p in pairs:
                    a.mul_(0.999).add_(p, alpha=0.001)
        return loss

    return step


class Dueling(nn.Module):  # type: ignore[misc]
    """What an action is worth, and a state without it, of a body of four layers."""

    def __init__(self) -> None:
        super().__init__()
        layers = [layer for wide in (24, 128, 128, 128) for layer in (nn.Linear(wide, 128), nn.ReLU())]
        self.body, self.value, self.advantage = nn.Sequential(*layers), nn.Linear(128, 1), nn.Linear(128, 6)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The worth of each action."""
        hidden = self.body(states)
        advantage = self.advantage(hidden)
        return self.value(hidden) + advantage - advantage.mean(1, keepdim=True)


def q_learning(device: torch.device, changed: bool) -> Step:
    """PyTorch's tutorial of DQN: each gradient is clamped in a Python loop; `torch._foreach_clamp_min_` and its like."""
    net, target = Dueling().to(device), Dueling().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, amsgrad=True)
    states, later = torch.randn(128, 24, device=device), torch.randn(128, 24, device=device)
    actions, rewards = torch.randint(0, 6, (128, 1), device=device), torch.randn(128, device=device)

    def step() -> object:
        worth = net(states).gather(1, actions)
        with torch.no_grad():
            expected = rewards + 0.99 * target(later).max(1).values
        loss = F.smooth_l1_loss(worth, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        if changed:
            gradients = [p.grad for p in net.parameters()]
            torch._foreach_clamp_min_(gradients, -1)
            torch._foreach_clamp_max_(gradients, 1)
        else:
            for p in net.parameters():
                p.grad.data.clamp_(-1, 1)
        optimizer.step()
        return loss

    return step


def soft_update(device: torch.device, changed: bool) -> Step:
    """An actor with twin critics (SAC's and TD3's), whose targets follow in a Python loop; `torch._foreach_lerp_`."""

    def mlp(inner: int, outer: int) -> nn.Module:
        body = (nn.Linear(inner, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        return nn.Sequential(*body, nn.Linear(256, outer)).to(device)

    nets = nn.ModuleList([mlp(23, 1), mlp(23, 1), mlp(17, 6)])
    targets = copy.deepcopy(nets)
    optimizer = torch.optim.Adam(nets.parameters(), lr=3e-4)
    states, actions = torch.randn(256, 17, device=device), torch.randn(256, 6, device=device)
    rewards = torch.randn(256, 1, device=device)

    def step() -> object:
        pairs = torch.cat([states, actions], 1)
        with torch.no_grad():
            then = torch.cat([states, targets[2](states).tanh()], 1)
            goal = rewards + 0.99 * torch.min(targets[0](then), targets[1](then))
        loss = F.mse_loss(nets[0](pairs), goal) + F.mse_loss(nets[1](pairs), goal)
        loss = loss - nets[0](torch.cat([states, nets[2](states).tanh()], 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if changed:
                torch._foreach_lerp_(list(targets.parameters()), list(nets.parameters()), 0.005)
            else:
                for followed, p in zip(targets.parameters(), nets.parameters(), strict=True):
                    followed.data.copy_(0.005 * p.data + 0.995 * followed.data)
        return loss

    return step


ROW = "launches once"
LOOPS = {
    "word model, own SGD": Changed("_foreach_add_", ROW, word_model),
    "MobileNet and its average": Changed("_foreach_lerp_", ROW, averaged),
    "DQN, clamped gradients": Changed("_foreach_clamp_", ROW, q_learning),
    "twin critics, targets": Changed("_foreach_lerp_", ROW, soft_update),
}
