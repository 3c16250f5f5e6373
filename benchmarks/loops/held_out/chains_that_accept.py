"""Hamiltonian Monte Carlo: an `if` asks of each of three chains whether its proposal is accepted; without, a where."""

from __future__ import annotations

import math
import random
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    functional = torch.nn.functional
    torch.manual_seed(0)
    dice = random.Random(0)
    rows, numbers, inner, size = (8192, 256, 512, 0.012) if device.type == "cuda" else (160, 16, 32, 0.06)
    chains, leaps = 3, 3  # which accept most
    x = torch.randn(rows, numbers).to(device)
    y = (x[:, 0] * x[:, 1] > 0).float()
    shapes = ((inner, numbers), (inner,), (1, inner), (1,))
    places = [[(torch.randn(shape) * 0.1).to(device) for shape in shapes] for _ in range(chains)]
    pushes = [[torch.randn(shape).to(device) for shape in shapes] for _ in range(7)]
    means = [place.clone() for place in places[0]]
    accepted: Any = 0
    count = 0

    def energy(place: list[Any]) -> Any:
        hidden = torch.tanh(functional.linear(x, place[0], place[1]))
        logits = functional.linear(hidden, place[2], place[3])[:, 0]
        prior = torch.stack([part.square().sum() for part in place]).sum() / 2
        return functional.binary_cross_entropy_with_logits(logits, y, reduction="sum") + prior

    def slopes(place: list[Any]) -> tuple[Any, list[Any]]:
        place = [part.detach().requires_grad_() for part in place]
        now = energy(place)
        return now.detach(), list(torch.autograd.grad(now, place))

    def moving(push: list[Any]) -> Any:
        return torch.stack([part.square().sum() for part in push]).sum() / 2

    def run(reads: bool) -> None:
        nonlocal accepted, count
        for number in range(chains):
            place, push = places[number], pushes[count % len(pushes)]
            count += 1
            limit = math.log(1 - dice.random())
            before, slope = slopes(place)
            before = before + moving(push)
            new = place
            for _ in range(leaps):
                push = [p - size / 2 * s for p, s in zip(push, slope, strict=True)]
                new = [n + size * p for n, p in zip(new, push, strict=True)]
                after, slope = slopes(new)
                push = [p - size / 2 * s for p, s in zip(push, slope, strict=True)]
            after = after + moving(push)
            accept = before - after > limit
            if not reads:
                places[number] = [torch.where(accept, n, old) for n, old in zip(new, place, strict=True)]
                accepted = accepted + accept
            elif accept:
                places[number] = new
                accepted = accepted + 1
            for mean, part in zip(means, places[number], strict=True):
                mean.lerp_(part, 0.01)

    return run
