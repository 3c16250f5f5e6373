"""What hands its loss to a helper that does the backward pass is in the step, and so is a method that is kept to be called."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

BASE = """
import torch

class Base:
    def apply_gradients(self, optimizer, objective):
        optimizer.zero_grad()
        self.scaler.scale(objective).backward()
        optimizer.step()

def descend(loss, optimizer):
    loss.backward()
    optimizer.step()

def descend_on(batch, net):
    net(batch).mean().backward()
"""
OWN = """
import torch

from .base import Base, descend, descend_on

def absolute(x: torch.Tensor):
    return x.abs().sum().item()  # hot

def squared(x: torch.Tensor):
    return x.square().sum().item()  # hot

def spread(x: torch.Tensor):
    return x.std().item()  # hot

def centred(x: torch.Tensor):
    return x.mean().item()  # cold

class Agent(Base):
    def __init__(self, several: bool):
        self.size = squared if several else absolute
        self.metrics = {"centred": 1, "spread": spread}
        self.explore = self.explore_several if several else self.explore_one
        self.seen = self.looked_at()
        self.ways = [self.explore_all, self.explore_few]

    def explore_several(self, buffer: torch.Tensor):
        return buffer.mean().item()  # hot

    def explore_one(self, buffer: torch.Tensor):
        return buffer.mean().item()  # hot

    def explore_all(self, buffer: torch.Tensor):
        return buffer.mean().item()  # hot

    def explore_few(self, buffer: torch.Tensor):
        return buffer.mean().item()  # hot

    def looked_at(self, buffer: torch.Tensor):
        return buffer.mean().item()  # cold

    def renew(self, buffer: torch.Tensor):
        objective = self.critic(buffer).mean()
        self.apply_gradients(self.optimizer, objective)
        return objective.item()  # hot

    def measured(self, buffer: torch.Tensor):
        return buffer.mean().item()  # cold

class Other:
    def renewed(self, buffer: torch.Tensor):
        self.apply_gradients(buffer)
        return buffer.mean().item()  # cold

def renewal(net, x: torch.Tensor, optimizer):
    loss = net(x).mean()
    descend(loss, optimizer)
    return loss.item()  # hot

def renewals(net, x: torch.Tensor):
    descend_on(x, net)
    return x.mean().item()  # cold
"""


@pytest.mark.parametrize("line", [n for n, text in enumerate(OWN.splitlines(), 1) if "  # " in text])
def test_what_hands_its_loss_to_a_backward_pass_or_is_kept_is_in_the_step(line: int, tmp_path: Path) -> None:
    folder = tmp_path / "renewing"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .agents import Agent, Other, renewal, renewals\n")
    (folder / "base.py").write_text(BASE)
    (folder / "agents.py").write_text(OWN)
    found = sites(OWN.encode(), str(folder / "agents.py"), Project())
    said = {site.place.line: "hot" if site.whole else "cold" for site in found}
    assert f"# {said[line]}" in OWN.splitlines()[line - 1]
