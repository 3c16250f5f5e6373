"""Teach a small convolutional network to read handwritten digits, and watch the loss, the gradient and the accuracy.

Each of the four things watched makes the host wait on every step.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    """Two convolutions with batch norm, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.head(x.flatten(1))


def train_one_epoch(model, loader, optimizer, device) -> tuple[float, float]:
    """The mean loss and the accuracy over an epoch."""
    model.train()
    total = correct = seen = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        if torch.isnan(loss):
            raise RuntimeError("the loss is not a number")
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if norm > 100:
            print("a steep step:", norm)
        optimizer.step()
        total += loss.item()
        correct += (model(images).argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return total / len(loader), correct / seen


@torch.no_grad()
def evaluate(model, loader, device) -> float:
    """The accuracy on digits that were not trained on."""
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images.to(device)).argmax(dim=1).cpu() == labels).sum().item()
    return correct / len(loader.dataset)


def main(argv: list[str] | None = None) -> None:
    """Train, and print a line an epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    digits = load_digits()
    data = TensorDataset(torch.from_numpy(digits.images).float().unsqueeze(1) / 16, torch.from_numpy(digits.target))
    training, held_out = random_split(data, [1500, len(data) - 1500], generator=torch.Generator().manual_seed(0))
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        loss, accuracy = train_one_epoch(model, DataLoader(training, args.batch, shuffle=True), optimizer, device)
        held = evaluate(model, DataLoader(held_out, 297), device)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}, held out {held:.3f}")


if __name__ == "__main__":
    main()
