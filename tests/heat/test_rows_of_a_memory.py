"""What fills one row of a memory and goes on to the next runs in steps, though no step of the project speaks of it."""

from pathlib import Path

import pytest
from heat.test_agents import found_in, marked_in

AGENT = """
    import torch

    class Agent:
        def learn(self, loader):
            for x in loader:
                loss = self.model(x).sum()
                loss.backward()
                self.optimizer.step()

        def after_move(self, reward: torch.Tensor):
            self.rewards[{at}]{fills}
            self.total += reward.sum().item()  # {told}
            {then}
"""


@pytest.mark.parametrize(
    ("at", "fills", "then", "told"),
    [
        ("self.at", " = reward", "self.at += 1", "hot"),
        ("self.at, :", " = reward", "self.at = (self.at + 1) % self.size", "hot"),
        ("self.at + 1", ".copy_(reward)", "self.at = self.at + 1", "hot"),
        ("self.at", " = reward", "self.at += self.size", "cold"),
        ("self.at", " = reward", "self.seen += 1", "cold"),
        ("self.at", ".sum()", "self.at += 1", "cold"),
        ("self.epoch", " = reward", "self.epoch += 1", "cold"),
    ],
)
def test_what_goes_on_to_the_next_row_is_hot(tmp_path: Path, at: str, fills: str, then: str, told: str) -> None:
    files = {"agent": AGENT.format(at=at, fills=fills, then=then, told=told)}
    assert found_in(files, "agent", tmp_path) == marked_in(files, "agent")
