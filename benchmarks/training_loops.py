"""Five loops as people write them, on any device: what `trace_overhead_cuda.py` measures a recording on."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], object]


def classifier(device: torch.device) -> Step:
    """An image classifier that logs loss, accuracy and the norm of its gradients."""
    layers: list[nn.Module] = []
    for wide, size in ((3, 32), (32, 64), (64, 128), (128, 128)):
        layers += [nn.Conv2d(wide, size, 3, 2, 1), nn.BatchNorm2d(size), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    images, labels = torch.randn(64, 3, 128, 128, device=device), torch.randint(0, 100, (64,), device=device)

    def step() -> object:
        optimizer.zero_grad()
        out = net(images)
        loss = nn.functional.cross_entropy(out, labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item(), (out.argmax(1) == labels).float().mean().item(), norm.item()

    return step


def gradients(device: torch.device) -> Step:
    """Many small operators, and the norm of each of two dozen gradients."""
    net = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(256, 256), nn.GELU()))).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    x = torch.randn(256, 256, device=device)

    def step() -> object:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        norms = [p.grad.norm().item() for p in net.parameters() if p.grad is not None]
        optimizer.step()
        return norms

    return step


def language_model(device: torch.device) -> Step:
    """A language model whose loss takes the masked tokens by a boolean index."""
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).to(device)
    words, head = nn.Embedding(8000, 512).to(device), nn.Linear(512, 8000).to(device)
    parameters = [*body.parameters(), *words.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    tokens = torch.randint(0, 8000, (16, 256), device=device)

    def step() -> object:
        optimizer.zero_grad()
        masked = torch.rand(tokens.shape, device=device) < 0.15
        hidden = body(words(tokens.masked_fill(masked, 0)))
        loss = nn.functional.cross_entropy(head(hidden[masked]), tokens[masked])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def gan(device: torch.device) -> Step:
    """A generator and a discriminator, whose two losses are logged."""

    def mlp(*sizes: int) -> nn.Module:
        pairs = itertools.pairwise(sizes)
        return nn.Sequential(*(layer for a, b in pairs for layer in (nn.Linear(a, b), nn.LeakyReLU(0.2)))).to(device)

    maker, judge = mlp(128, 512, 1024, 784), mlp(784, 1024, 512, 1)
    first, second = (torch.optim.Adam(net.parameters(), lr=1e-4) for net in (maker, judge))
    real = torch.randn(256, 784, device=device)

    def step() -> object:
        fake = maker(torch.randn(256, 128, device=device))
        second.zero_grad()
        wrong = nn.functional.softplus(-judge(real)).mean() + nn.functional.softplus(judge(fake.detach())).mean()
        wrong.backward()
        second.step()
        first.zero_grad()
        found = nn.functional.softplus(-judge(fake)).mean()
        found.backward()
        first.step()
        return wrong.item(), found.item()

    return step


def policy(device: torch.device) -> Step:
    """A policy that copies its actions to the host sixteen times a step, and then learns."""
    net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)

    def step() -> object:
        state, chosen = torch.zeros(32, 64, device=device), []
        for _ in range(16):
            odds = torch.distributions.Categorical(logits=net(state), validate_args=False)
            action = odds.sample()
            chosen.append(odds.log_prob(action))
            moves = action.cpu().float()
            state = torch.nn.functional.pad(moves[:, None], (0, 63)).to(device)
        optimizer.zero_grad()
        loss = -torch.stack(chosen).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


LOOPS = {
    "classifier, three numbers": classifier,
    "24 gradient norms": gradients,
    "language model, masked": language_model,
    "GAN, two losses": gan,
    "policy, 16 copies": policy,
}
