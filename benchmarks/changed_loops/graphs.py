"""The host's launches go: the step is a graph, or its network is compiled to some (`torch.compile(mode="reduce-overhead")`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from changed_loops.steps import Changed, Step, captured, images, supervised, trained


def resnet_small(device: torch.device, changed: bool) -> Step:
    """torchvision's reference: ResNet-18, SGD with momentum, on small images."""
    from torchvision.models import resnet18

    net = resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    step = supervised(net, optimizer, images(device, 32, 64, 10), to_none=False)
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


def sage(device: torch.device, changed: bool) -> Step:
    """PyG's `graph_sage`: three convolutions over a sampled subgraph, Adam."""
    from torch_geometric.nn import GraphSAGE

    net = GraphSAGE(128, 256, num_layers=3, out_channels=40).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)
    x, edges = torch.randn(4000, 128, device=device), torch.randint(0, 4000, (2, 20000), device=device)
    labels = torch.randint(0, 40, (1024,), device=device)

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(net(x, edges)[:1024], labels)
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, device) if changed else step


class Sine(nn.Module):  # type: ignore[misc]
    """The examples' `time_sequence_prediction`: two LSTM cells, called for each sample of a wave."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 51), nn.LSTMCell(51, 51), nn.Linear(51, 1)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        """What follows each sample."""
        first = second = (waves.new_zeros(len(waves), 51), waves.new_zeros(len(waves), 51))
        found = []
        for sample in waves.split(1, dim=1):
            first = self.lstm1(sample, first)
            second = self.lstm2(first[0], second)
            found.append(self.linear(second[0]))
        return torch.cat(found, dim=1)


def sines(device: torch.device, changed: bool) -> Step:
    """`time_sequence_prediction` with Adam, forty samples long."""
    net = Sine().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)
    waves = torch.sin(torch.rand(97, 41, device=device) * 20)

    def step() -> object:
        optimizer.zero_grad(set_to_none=False)
        loss = F.mse_loss(net(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, device) if changed else step


class Style(nn.Module):  # type: ignore[misc]
    """The examples' `fast_neural_style`: reflected borders, instance norms, five residual blocks."""

    def __init__(self, wide: int = 32) -> None:
        super().__init__()

        def conv(inner: int, outer: int, size: int, stride: int = 1) -> list[nn.Module]:
            return [nn.ReflectionPad2d(size // 2), nn.Conv2d(inner, outer, size, stride)]

        def normed(outer: int) -> list[nn.Module]:
            return [nn.InstanceNorm2d(outer, affine=True), nn.ReLU()]

        self.down = nn.Sequential(
            *(*conv(3, wide, 9), *normed(wide), *conv(wide, 2 * wide, 3, 2), *normed(2 * wide)),
            *(*conv(2 * wide, 4 * wide, 3, 2), *normed(4 * wide)),
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(*conv(4 * wide, 4 * wide, 3), *normed(4 * wide), *conv(4 * wide, 4 * wide, 3))
            for _ in range(5)
        )
        self.up = nn.Sequential(
            *(nn.Upsample(scale_factor=2), *conv(4 * wide, 2 * wide, 3), *normed(2 * wide)),
            *(nn.Upsample(scale_factor=2), *conv(2 * wide, wide, 3), *normed(wide), *conv(wide, 3, 9)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The picture in another style."""
        x = self.down(x)
        for block in self.blocks:
            x = x + block(x)
        return self.up(x)


def style(device: torch.device, changed: bool) -> Step:
    """`fast_neural_style` with Adam, the network compiled."""
    net: Any = Style().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    pictures = torch.rand(4, 3, 64, 64, device=device)
    if changed:
        net = torch.compile(net, mode="reduce-overhead")

    return trained(optimizer, lambda: F.mse_loss(net(pictures), pictures))


def vision(device: torch.device, changed: bool) -> Step:
    """torchvision's vision transformer, small, with AdamW, the network compiled."""
    from torchvision.models import VisionTransformer

    net: Any = VisionTransformer(64, 16, num_layers=6, num_heads=4, hidden_dim=192, mlp_dim=768, num_classes=100)
    net = net.to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    if changed:
        net = torch.compile(net, mode="reduce-overhead")
    return supervised(net, optimizer, images(device, 32, 64, 100))


def bert(device: torch.device, changed: bool) -> Step:
    """transformers' BERT, small, that learns masked words; the network compiled."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=4000, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024
    )
    net: Any = BertForMaskedLM(config).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    tokens = torch.randint(0, 4000, (8, 64), device=device)
    if changed:
        net = torch.compile(net, mode="reduce-overhead")

    return trained(optimizer, lambda: net(input_ids=tokens, labels=tokens).loss)


ROW = "launches cost nothing"
LOOPS = {
    "ResNet-18, small images": Changed("CUDA graph", ROW, resnet_small),
    "GCN of PyG": Changed("CUDA graph", ROW, graph_network),
    "actor and critic": Changed("CUDA graph", ROW, policy),
    "GraphSAGE of PyG": Changed("CUDA graph", ROW, sage),
    "sines, LSTM cells": Changed("CUDA graph", ROW, sines),
    "fast neural style": Changed("reduce-overhead", ROW, style),
    "vision transformer": Changed("reduce-overhead", ROW, vision),
    "BERT of transformers": Changed("reduce-overhead", ROW, bert),
}
