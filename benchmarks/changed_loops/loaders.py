"""Batches that the main process makes; workers make them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it
from torch.utils.data import DataLoader, Dataset

from changed_loops.steps import Batch, Changed, Step, supervised


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
    more: dict[str, Any] = {"num_workers": 8, "persistent_workers": True, "prefetch_factor": 4} if changed else {}
    batches = iter(DataLoader(Pictures(112), batch_size=32, shuffle=False, **more))

    def batch() -> Batch:
        inputs, labels = next(batches)
        return inputs.to(device), labels.to(device)

    return supervised(net, torch.optim.SGD(net.parameters(), lr=0.01), batch)


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


class Pairs(Dataset[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]):  # type: ignore[misc]
    """The examples' `siamese_network`: two digits, as often of one class as not, each made a picture and a tensor again."""

    def __init__(self) -> None:
        from torchvision import transforms

        self.raw = [np.random.default_rng(n).integers(0, 255, (28, 28), np.uint8) for n in range(256)]
        self.made = transforms.Compose([transforms.ToPILImage(), transforms.Resize(32), transforms.ToTensor()])

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first, second = (self.made(self.raw[(number * times) % len(self.raw)]) for times in (1, 7))
        return first, second, torch.tensor(float(number % 2))


def siamese(device: torch.device, changed: bool) -> Step:
    """`siamese_network`: ResNet-18 sees both of 32 pairs, Adadelta; four workers."""
    from torchvision.models import resnet18

    body = resnet18(num_classes=256)
    body.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    head = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
    net = nn.ModuleList([body, head]).to(device)
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    more: dict[str, Any] = {"num_workers": 4, "persistent_workers": True, "prefetch_factor": 4} if changed else {}
    batches = iter(DataLoader(Pairs(), batch_size=32, **more))

    def step() -> object:
        first, second, alike = (one.to(device) for one in next(batches))
        optimizer.zero_grad()
        out = head(torch.cat([body(first), body(second)], 1)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(out, alike)
        loss.backward()
        optimizer.step()
        return loss

    return step


ROW = "loader is never late"
LOOPS = {
    "ResNet-18, transforms": Changed("8 workers", ROW, pictures),
    "Transformer, texts": Changed("4 workers", ROW, sentences),
    "siamese network": Changed("4 workers", ROW, siamese),
}
