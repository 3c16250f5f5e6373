"""Which assays a molecule is toxic in: measured ones are picked by a mask, and gradients of assays that disagree are projected.

Fixed: what was not measured weighs nought, and what a gradient loses by another is clamped at nought, without an `if`.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

SHOWN = 0.9  # the share of the past in what is shown


def picked(out: torch.Tensor, toxic: torch.Tensor) -> torch.Tensor:
    """The loss of an assay over what was measured."""
    measured = ~torch.isnan(toxic)
    return F.binary_cross_entropy_with_logits(out[measured], toxic[measured])


def weighed(out: torch.Tensor, toxic: torch.Tensor) -> torch.Tensor:
    """The same in fixed shapes."""
    measured = ~torch.isnan(toxic)
    each = F.binary_cross_entropy_with_logits(out, toxic.nan_to_num(), reduction="none")
    return (each * measured).sum() / measured.sum()


def projected(grads: list[torch.Tensor], order: random.Random) -> torch.Tensor:
    """The sum of gradients, each without what speaks against another (PCGrad)."""
    total = torch.zeros_like(grads[0])
    for grad in grads:
        kept = grad.clone()
        for other in order.sample(grads, len(grads)):
            dot = torch.dot(kept, other)
            if dot < 0:
                kept -= dot / other.dot(other) * other
        total += kept
    return total


def projected_unasked(grads: list[torch.Tensor], order: random.Random) -> torch.Tensor:
    """The same for any gradients: where two agree, nothing is taken away."""
    total = torch.zeros_like(grads[0])
    for grad in grads:
        kept = grad.clone()
        for other in order.sample(grads, len(grads)):
            dot = torch.dot(kept, other).clamp(max=0)
            kept -= dot / other.dot(other) * other
        total += kept
    return total


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    molecules, bits, width, assays = (4096, 2048, 2048, 7) if device.type == "cuda" else (64, 32, 16, 3)
    net = nn.Sequential(
        nn.Linear(bits, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(width, width // 2, bias=False), nn.BatchNorm1d(width // 2), nn.ReLU(), nn.Dropout(0.1),
    ).to(device)  # fmt: skip
    heads = nn.Linear(width // 2, assays).to(device)
    shared = list(net.parameters())
    optimizer = torch.optim.AdamW([*shared, *heads.parameters()], lr=1e-3)
    prints = (torch.rand(4, molecules, bits) < 0.05).float()
    toxic = (prints @ torch.randn(bits, assays) > 1).float()
    toxic[torch.rand_like(toxic) < 0.25] = torch.nan
    prints, toxic = prints.to(device), toxic.to(device)
    order = random.Random(0)
    shown: list[Any] = [0.0] * assays
    steps = 0

    def step(written: bool) -> None:
        nonlocal steps
        place = steps % len(prints)
        steps += 1
        out = heads(net(prints[place]))
        optimizer.zero_grad()
        loss_of = picked if written else weighed
        losses = [loss_of(out[:, assay], toxic[place, :, assay]) for assay in range(assays)]
        grads = []
        for loss in losses:
            each = torch.autograd.grad(loss, shared, retain_graph=True)
            grads.append(torch.cat([one.flatten() for one in each]))
        torch.stack(losses).mean().backward(inputs=list(heads.parameters()))
        whole = projected(grads, order) if written else projected_unasked(grads, order)
        for one, grad in zip(shared, whole.split([one.numel() for one in shared]), strict=True):
            one.grad = grad.view_as(one)
        optimizer.step()
        for assay, loss in enumerate(losses):
            now = loss.item() if written else loss.detach()
            shown[assay] = SHOWN * shown[assay] + (1 - SHOWN) * now

    return step
