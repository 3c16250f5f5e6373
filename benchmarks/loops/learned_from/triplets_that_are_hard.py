"""Triplets of digits whose margin is not kept yet are counted and averaged alone; without, the others count nought."""

from __future__ import annotations

from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    from sklearn.datasets import load_digits

    nn = torch.nn
    torch.manual_seed(60)
    batch, width = (192, 512) if device.type == "cuda" else (32, 32)
    digits = load_digits()
    order = torch.randperm(len(digits.data))[: 6 * batch].reshape(6, batch)
    images = (torch.from_numpy(digits.data).float() / 16)[order].to(device)
    labels = torch.from_numpy(digits.target).long()[order].to(device)
    embed = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)).to(device)
    optimizer = torch.optim.Adam(embed.parameters(), lr=1e-3)
    margin, shares = 0.2, list[Any]()

    def run(reads: bool) -> None:
        turn = len(shares) % 6
        x, y = images[turn], labels[turn]
        code = nn.functional.normalize(embed(x), dim=1)
        apart = 1 - code @ code.T
        same = y[:, None] == y[None, :]
        losses = apart[:, :, None] - apart[:, None, :] + margin
        allowed = same[:, :, None] & ~same[:, None, :]
        losses = (losses * allowed).clamp(min=0)
        hard = losses > 1e-16
        if reads:
            positive = hard.sum().item()
            loss = losses[hard].mean() if positive else losses.sum() * 0
            shares.append(positive / allowed.sum().item())
        else:
            number = hard.sum()
            loss = losses.sum() / number.clamp(min=1)
            shares.append(number / allowed.sum())
        del shares[:-12]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
