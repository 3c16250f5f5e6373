"""A GAN's step: two networks, two optimizers, both losses and a score read for the log line."""

from __future__ import annotations

from typing import Any

from loops import Step, sized, work


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    noises, inner, values, batch = (sized(device, side) for side in (64, 512, 256, 128))
    netd = nn.Sequential(nn.Linear(values, inner), nn.LeakyReLU(0.2), nn.Linear(inner, 1)).to(device)
    netg = nn.Sequential(nn.Linear(noises, inner), nn.ReLU(), nn.Linear(inner, values), nn.Tanh()).to(device)
    optd, optg = (torch.optim.SGD(net.parameters(), lr=1e-3) for net in (netd, netg))
    criterion = nn.BCEWithLogitsLoss()
    real, noise = torch.randn(batch, values).to(device), torch.randn(batch, noises).to(device)
    ones, zeros = torch.ones(batch, 1).to(device), torch.zeros(batch, 1).to(device)

    def run(reads: bool) -> None:
        fake = netg(noise)
        netd.zero_grad()
        score = netd(real)
        errd = criterion(score, ones) + criterion(netd(fake.detach()), zeros)
        errd.backward()
        optd.step()
        if reads:
            errd.item()
        work(3)
        netg.zero_grad()
        errg = criterion(netd(fake), ones)
        errg.backward()
        optg.step()
        mean = score.mean()
        if reads:
            errg.item(), mean.item()
        work(4)

    return run
