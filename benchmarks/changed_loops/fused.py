"""An optimizer's step in single operators, or some for many tensors; in one kernel (`fused=True`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from changed_loops.steps import Changed, Step, images, supervised, trained


def language_model(device: torch.device, changed: bool) -> Step:
    """transformers' GPT-2, small, with AdamW as it is made by default; `fused=True`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=8, n_embd=256, n_head=8, vocab_size=8000, n_positions=128)
    net = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **({"fused": True} if changed else {}))
    tokens = torch.randint(0, 8000, (4, 128), device=device)

    return trained(optimizer, lambda: net(input_ids=tokens, labels=tokens).loss)


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


def super_resolution(device: torch.device, changed: bool) -> Step:
    """The examples' `super_resolution`: four convolutions, a shuffle of pixels; Adam as it is by default."""
    net = nn.Sequential(
        *(nn.Conv2d(1, 64, 5, 1, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU()),
        *(nn.Conv2d(64, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 9, 3, 1, 1), nn.PixelShuffle(3)),
    ).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, **({"fused": True} if changed else {}))
    small, large = torch.rand(4, 1, 85, 85, device=device), torch.rand(4, 1, 255, 255, device=device)

    return trained(optimizer, lambda: F.mse_loss(net(small), large))


def efficient(device: torch.device, changed: bool) -> Step:
    """torchvision's EfficientNet with AdamW, 211 parameters one after the other (`foreach=False`)."""
    from torchvision.models import efficientnet_b0

    net = efficientnet_b0(num_classes=10).to(device)
    how: dict[str, Any] = {"fused": True} if changed else {"foreach": False}
    return supervised(net, torch.optim.AdamW(net.parameters(), lr=1e-4, **how), images(device, 16, 96, 10))


ROW = "step is one launch"
LOOPS = {
    "GPT-2 of transformers": Changed("fused=True", ROW, language_model),
    "VAE, Adam without foreach": Changed("fused=True", ROW, autoencoder),
    "DCGAN": Changed("fused=True, both", ROW, adversaries),
    "super resolution": Changed("fused=True", ROW, super_resolution),
    "EfficientNet, no foreach": Changed("fused=True", ROW, efficient),
}
