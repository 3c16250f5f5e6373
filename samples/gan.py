"""Two networks play against each other over handwritten digits; written for CUDA, with the log line that everybody writes.

syncscope run --device ocl samples/gan.py        the same script without a GPU
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOISE = 16


def discriminator() -> nn.Sequential:
    """From an 8 x 8 picture to one score: real or made up."""
    return nn.Sequential(
        nn.Linear(64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
    )


def generator() -> nn.Sequential:
    """From noise to an 8 x 8 picture."""
    return nn.Sequential(
        nn.Linear(NOISE, 128), nn.ReLU(), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64), nn.Tanh()
    )


def main(argv: list[str] | None = None) -> None:
    """Train both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digits = torch.from_numpy(load_digits().data).float() / 8 - 1
    loader = DataLoader(TensorDataset(digits), batch_size=args.batch, shuffle=True, drop_last=True)
    netD, netG = discriminator().to(device), generator().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

    step = 0
    while step < args.steps:
        for (real,) in loader:
            real = real.to(device)
            fake = netG(torch.randn(len(real), NOISE, device=device))
            ones, zeros = torch.ones(len(real), 1, device=device), torch.zeros(len(real), 1, device=device)

            netD.zero_grad()
            on_real, on_fake = netD(real), netD(fake.detach())
            errD = criterion(on_real, ones) + criterion(on_fake, zeros)
            errD.backward()
            optimizerD.step()

            netG.zero_grad()
            errG = criterion(netD(fake), ones)
            errG.backward()
            optimizerG.step()

            D_x = on_real.sigmoid().mean().item()
            D_G = on_fake.sigmoid().mean().item()
            line = f"[{step}] Loss_D {errD.item():.4f} Loss_G {errG.item():.4f} D(x) {D_x:.3f} D(G(z)) {D_G:.3f}"
            if step % 10 == 0:
                print(line)
            step += 1
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
