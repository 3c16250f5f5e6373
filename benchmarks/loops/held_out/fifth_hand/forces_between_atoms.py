"""Energies and forces of atoms, the forces by a derivative of the energies: who is near whom is looked up in every step.

Fixed: it was looked up when the data was read, and the errors add up on the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

REACH, WAVES = 5.0, 48  # as far as an atom reaches, in angstrom, and how finely a distance is told
KINDS = 5


class Meet(nn.Module):
    """Atoms hear from those near them, through a filter that the distance makes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(WAVES, width), nn.SiLU(), nn.Linear(width, width))
        self.enter = nn.Linear(width, width, bias=False)
        self.out = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h: torch.Tensor, edges: torch.Tensor, told: torch.Tensor, fade: torch.Tensor) -> torch.Tensor:
        here, there = edges
        passed = self.enter(h).index_select(0, there) * (self.filter(told) * fade)
        return h + self.out(torch.zeros_like(h).index_add(0, here, passed))


class Potential(nn.Module):
    """The energy of each atom."""

    waves: torch.Tensor

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.kinds = nn.Embedding(KINDS, width)
        self.meets = nn.ModuleList(Meet(width) for _ in range(depth))
        self.out = nn.Sequential(nn.Linear(width, width // 2), nn.SiLU(), nn.Linear(width // 2, 1))
        self.register_buffer("waves", torch.linspace(0, REACH, WAVES))

    def forward(self, kinds: torch.Tensor, places: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        apart = (places.index_select(0, edges[0]) - places.index_select(0, edges[1])).norm(dim=1, keepdim=True)
        told = torch.exp(-10 * (apart - self.waves).square())
        fade = 0.5 * (torch.cos(torch.pi * apart / REACH) + 1)
        h = self.kinds(kinds)
        for meet in self.meets:
            h = meet(h, edges, told, fade)
        return self.out(h)[:, 0]


def neighbours(places: torch.Tensor) -> torch.Tensor:
    """Pairs of atoms of one molecule that are near each other, counted through the batch."""
    many = places.shape[1]
    near = torch.cdist(places, places) < REACH
    near &= ~torch.eye(many, dtype=torch.bool, device=places.device)
    molecule, here, there = near.nonzero(as_tuple=True)
    return torch.stack([molecule * many + here, molecule * many + there])


def loop(_: Any, device: torch.device) -> Any:
    torch.manual_seed(0)
    molecules, atoms, width, depth = (64, 96, 128, 3) if device.type == "cuda" else (3, 8, 8, 2)
    net = Potential(width, depth).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4)
    places = (9.0 * torch.rand(4, molecules, atoms, 3)).to(device)
    kinds = torch.randint(0, KINDS, (4, molecules * atoms)).to(device)
    energies, pulls = torch.randn(4, molecules).to(device), torch.randn(4, molecules * atoms, 3).to(device)
    known = [neighbours(one) for one in places]
    errors: dict[str, float] = {"energy": 0.0, "force": 0.0}
    kept = torch.zeros(2, device=device)
    steps = 0

    def learn(place: int, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """How far off energies and forces are."""
        here = places[place].flatten(0, 1).requires_grad_()
        energy = net(kinds[place], here, edges).view(molecules, atoms).sum(1)
        (slope,) = torch.autograd.grad(energy.sum(), here, create_graph=True)
        loss = F.mse_loss(energy, energies[place]) + 100 * F.mse_loss(-slope, pulls[place])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        return F.l1_loss(energy.detach(), energies[place]), F.l1_loss(-slope.detach(), pulls[place])

    def step(written: bool) -> None:
        nonlocal steps
        place = steps % len(places)
        steps += 1
        if written:
            energy, force = learn(place, neighbours(places[place]))
            errors["energy"] += energy.item()
            errors["force"] += force.item()
        else:
            kept.add_(torch.stack(learn(place, known[place])))

    return step
