"""Training loops as the examples of PyTorch, torchvision, transformers and PyG have them, each in two versions: as written, and
with one thing changed that is no wait. `what_if_truth.py` measures both, beside what a recording of the first says."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it
from torch.utils.data import DataLoader, Dataset

Step = Callable[[], object]
Make = Callable[[torch.device, bool], Step]


def captured(step: Step, device: torch.device) -> Step:
    """The step as a graph of the device's."""
    if device.type == "ocl":
        again: Step = torch.ocl.capture(step).replay
        return again
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay() -> object:
        graph.replay()
        return step  # and what it works on stays where it is

    return replay


def resnet_small(device: torch.device, changed: bool) -> Step:
    """torchvision's reference: ResNet-18, SGD with momentum, on small images."""
    from torchvision.models import resnet18

    net = resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    images, labels = torch.randn(32, 3, 64, 64, device=device), torch.randint(0, 10, (32,), device=device)

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, device) if changed else step


class GraphNetwork(nn.Module):  # type: ignore[misc]  # torch has no types here
    """PyG's `gcn.py`: two convolutions, dropout."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.conv1, self.conv2 = GCNConv(features, hidden, cached=True), GCNConv(hidden, classes, cached=True)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """The scores of each node."""
        x = F.relu(self.conv1(F.dropout(x, 0.5, self.training), edges))
        return self.conv2(F.dropout(x, 0.5, self.training), edges)


def graph_network(device: torch.device, changed: bool) -> Step:
    """PyG's `gcn.py` on a graph of the size of Cora."""
    net = GraphNetwork(1433, 16, 7).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4, capturable=True)
    x, labels = torch.randn(2708, 1433, device=device), torch.randint(0, 7, (2708,), device=device)
    edges = torch.randint(0, 2708, (2, 10556), device=device)

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        out = net(x, edges)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        optimizer.step()
        return loss

    step()  # fills the convolutions' cache, which counts
    return captured(step, device) if changed else step


def policy(device: torch.device, changed: bool) -> Step:
    """An actor and a critic of three layers, as in examples of reinforcement learning, updated on a minibatch."""
    actor, critic = (
        nn.Sequential(nn.Linear(17, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, out)).to(device)
        for out in (6, 1)
    )
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4, capturable=True)
    states, actions = torch.randn(256, 17, device=device), torch.randn(256, 6, device=device)
    advantages, returns, before = (torch.randn(256, device=device) for _ in range(3))

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        log_prob = -0.5 * (actions - actor(states)).square().sum(-1)
        ratio = (log_prob - before).clamp(-5, 5).exp()
        surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        loss = -surrogate + 0.5 * (critic(states).squeeze(-1) - returns).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, device) if changed else step


def language_model(device: torch.device, changed: bool) -> Step:
    """transformers' GPT-2, small, with AdamW as it is made by default; `fused=True`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=8, n_embd=256, n_head=8, vocab_size=8000, n_positions=128)
    net = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **({"fused": True} if changed else {}))
    tokens = torch.randint(0, 8000, (4, 128), device=device)

    def step() -> object:
        optimizer.zero_grad()
        loss = net(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss

    return step


class Autoencoder(nn.Module):  # type: ignore[misc]
    """The examples' `vae`."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The image again, and what it was drawn from."""
        hidden = F.relu(self.fc1(x))
        mean, log_variance = self.fc21(hidden), self.fc22(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, log_variance


def autoencoder(device: torch.device, changed: bool) -> Step:
    """The examples' `vae` with Adam, one parameter after the other (`foreach=False`, as on devices without foreach); fused."""
    net = Autoencoder().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, **({"fused": True} if changed else {"foreach": False}))
    images = torch.rand(128, 784, device=device)

    def step() -> object:
        optimizer.zero_grad()
        again, mean, log_variance = net(images)
        loss = F.binary_cross_entropy(again, images, reduction="sum")
        loss = loss - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        loss.backward()
        optimizer.step()
        return loss

    return step


def adversaries(device: torch.device, changed: bool) -> Step:
    """The examples' `dcgan`: two networks, two Adams, small images; both fused."""
    wide, latent = 32, 64
    generator = nn.Sequential(
        *(nn.ConvTranspose2d(latent, wide * 4, 4, 1, 0), nn.BatchNorm2d(wide * 4), nn.ReLU(True)),
        *(nn.ConvTranspose2d(wide * 4, wide * 2, 4, 2, 1), nn.BatchNorm2d(wide * 2), nn.ReLU(True)),
        *(nn.ConvTranspose2d(wide * 2, wide, 4, 2, 1), nn.BatchNorm2d(wide), nn.ReLU(True)),
        *(nn.ConvTranspose2d(wide, 3, 4, 2, 1), nn.Tanh()),
    ).to(device)
    discriminator = nn.Sequential(
        *(nn.Conv2d(3, wide, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(wide, wide * 2, 4, 2, 1)),
        *(nn.BatchNorm2d(wide * 2), nn.LeakyReLU(0.2, True), nn.Conv2d(wide * 2, wide * 4, 4, 2, 1)),
        *(nn.BatchNorm2d(wide * 4), nn.LeakyReLU(0.2, True), nn.Conv2d(wide * 4, 1, 4, 1, 0), nn.Flatten(0)),
    ).to(device)
    how: dict[str, Any] = {"lr": 2e-4, "betas": (0.5, 0.999), **({"fused": True} if changed else {})}
    of_d = torch.optim.Adam(discriminator.parameters(), **how)
    of_g = torch.optim.Adam(generator.parameters(), **how)
    real, ones, zeros = (
        torch.rand(32, 3, 32, 32, device=device),
        torch.ones(32, device=device),
        torch.zeros(32, device=device),
    )
    judge = nn.BCEWithLogitsLoss()

    def step() -> object:
        of_d.zero_grad()
        judge(discriminator(real), ones).backward()
        fake = generator(torch.randn(32, latent, 1, 1, device=device))
        judge(discriminator(fake.detach()), zeros).backward()
        of_d.step()
        of_g.zero_grad()
        loss = judge(discriminator(fake), ones)
        loss.backward()
        of_g.step()
        return loss

    return step


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
    images, labels = torch.randn(32, 3, 96, 96, device=device), torch.randint(0, 100, (32,), device=device)
    pairs = list(zip(average.parameters(), net.parameters(), strict=True))

    def step() -> object:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if changed:
                torch._foreach_lerp_([a for a, _ in pairs], [p for _, p in pairs], 0.001)
            else:
                for a, p in pairs:
                    a.mul_(0.999).add_(p, alpha=0.001)
        return loss

    return step


class Pictures(Dataset[tuple[torch.Tensor, int]]):  # type: ignore[misc]
    """Images that are cut, turned and normalised as torchvision's reference does, on the host."""

    def __init__(self, size: int) -> None:
        from torchvision import transforms

        self.raw = [np.random.default_rng(n).integers(0, 255, (140, 140, 3), np.uint8) for n in range(64)]
        steps = [transforms.ToPILImage(), transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()]
        self.made = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.2] * 3)])

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return self.made(self.raw[number % len(self.raw)]), number % 10


def pictures(device: torch.device, changed: bool) -> Step:
    """ResNet-18 on images that the main process prepares; eight workers."""
    from torchvision.models import resnet18

    net = resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    more: dict[str, Any] = {"num_workers": 8, "persistent_workers": True, "prefetch_factor": 4} if changed else {}
    batches = iter(DataLoader(Pictures(112), batch_size=32, shuffle=False, **more))

    def step() -> object:
        images, labels = next(batches)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        return loss

    return step


class Sentences(Dataset[torch.Tensor]):  # type: ignore[misc]
    """Texts that are made of words in Python."""

    def __init__(self) -> None:
        self.words = {f"word{n}": n for n in range(4000)}

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        rng = random.Random(number)
        text = " ".join(f"word{rng.randrange(4000)}" for _ in range(96))
        return torch.tensor([self.words[word] for word in text.split(" ")])


def sentences(device: torch.device, changed: bool) -> Step:
    """A transformer of torch over texts that the main process splits; four workers."""
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 512, batch_first=True), 3).to(device)
    words, head = nn.Embedding(4000, 256).to(device), nn.Linear(256, 4000).to(device)
    optimizer = torch.optim.Adam([*body.parameters(), *words.parameters(), *head.parameters()], lr=1e-4)
    more: dict[str, Any] = {"num_workers": 4, "persistent_workers": True} if changed else {}
    batches = iter(DataLoader(Sentences(), batch_size=48, **more))

    def step() -> object:
        tokens = next(batches).to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(head(body(words(tokens))).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def uploads(device: torch.device, changed: bool) -> Step:
    """A network of convolutions whose batches lie in pageable memory; pinned, `non_blocking`."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 3, 2, 1)),
        *(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)),
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    held = [(torch.randn(128, 3, 224, 224), torch.randint(0, 10, (128,))) for _ in range(3)]
    if changed:
        held = [(images.pin_memory(), labels.pin_memory()) for images, labels in held]
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]] = itertools.cycle(held)

    def step() -> object:
        images, labels = next(batches)
        images, labels = images.to(device, non_blocking=changed), labels.to(device, non_blocking=changed)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def logged(device: torch.device, changed: bool) -> Step:
    """A classifier that writes a line of JSON with everything it knows of its parameters in each step; none."""
    net = nn.Sequential(
        *(layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.ReLU())), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, labels = torch.randn(512, 512, device=device), torch.randint(0, 10, (512,), device=device)
    log: list[str] = []

    def step() -> object:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        if not changed:
            shapes = {name: list(p.shape) for name, p in net.named_parameters()}
            log.append(
                json.dumps({"step": len(log), "shapes": shapes, "groups": [len(g) for g in optimizer.param_groups]})
            )
            log[:] = [json.dumps(json.loads(line), sort_keys=True) for line in log[-12:]]
        return loss

    return step


LOOPS: dict[str, tuple[str, str, Make]] = {
    "ResNet-18, small images": ("CUDA graph", "launches cost nothing", resnet_small),
    "GCN of PyG": ("CUDA graph", "launches cost nothing", graph_network),
    "actor and critic": ("CUDA graph", "launches cost nothing", policy),
    "GPT-2 of transformers": ("fused=True", "step is one launch", language_model),
    "VAE, Adam without foreach": ("fused=True", "step is one launch", autoencoder),
    "DCGAN": ("fused=True, both", "step is one launch", adversaries),
    "word model, own SGD": ("_foreach_add_", "launches once", word_model),
    "MobileNet and its average": ("_foreach_lerp_", "launches once", averaged),
    "ResNet-18, transforms": ("8 workers", "loader is never late", pictures),
    "Transformer, texts": ("4 workers", "loader is never late", sentences),
    "convolutions, uploads": ("pinned", "pinned and asynchronous", uploads),
    "classifier that logs": ("no log", "own work", logged),
}
"""By name: what was changed, the row of `what_if` that is about it (a part of its name), and how both are made."""
