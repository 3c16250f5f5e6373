"""What an agent's step calls runs in it: acting, weights that are set, predictions of values, looks at the last rollout."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

FILES = {
    "agent": """
    import torch
    from .core import Agent

    class Learner(Agent):
        def fit(self, dataset):
            x = torch.stack(dataset)
            target = self.target.predict(x)
            loss = (self.model(x) - target).mean()
            loss.backward()
            self.search()
            self.note(dataset, loss)
            self._note(dataset, loss)

        def search(self):
            for step in range(10):
                self.policy.set_weights(self.direction * step)

        def _note(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # hot

        def note(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # hot

        def score(self, dataset, loss: torch.Tensor):
            print(loss.item(), len(dataset))  # cold
    """,
    "policies": """
    import torch

    class Policy:
        def set_weights(self, weights):
            raise NotImplementedError

    class Gaussian(Policy):
        def draw_action(self, state: torch.Tensor):
            return self.drawn(state).sum().item()  # hot

        def drawn(self, state: torch.Tensor):
            return state / state.sum().item()  # hot

        def draw_ellipse(self, state: torch.Tensor):
            return state.sum().item()  # cold

        def set_weights(self, weights):
            self.scale = torch.as_tensor(weights, device="cuda").sum().item()  # hot

    class Boltzmann(Policy):
        def set_weights(self, weights):
            self.values.set_weights(weights)

    class Ensemble:
        def set_weights(self, weights):
            for model in self.models:
                model.set_weights(weights)

        def predict(self, x):
            return [model.predict(x) for model in self.models]

    class Linear:
        def set_weights(self, weights: torch.Tensor):
            self.scale = weights.sum().item()  # hot

        def set_seed(self, seed: torch.Tensor):
            self.seed = seed.item()  # cold

        def predict(self, x: torch.Tensor):
            return x / x.sum().item()  # hot

    class Table:
        def set_weights(self, weights):
            self.model.set_weights(weights)

        def predict(self, x):
            return self.model.predict(x)
    """,
    "core": """
    class Agent:
        def draw_action(self, state):
            return self.policy.draw_action(state)

    class Core:
        def learn(self, steps):
            for step in range(steps):
                action = self.agent.draw_action(self.state)
                self.state = self.world.step(action)
                self.agent.fit([self.state])
    """,
}


@pytest.mark.parametrize("name", ["agent", "policies"])
def test_what_an_agents_step_calls_runs_in_it_whatever_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "rl").mkdir()
    (tmp_path / "rl" / "__init__.py").write_text(
        "from .agent import Learner\nfrom .core import Core\nfrom .policies import *\n"
    )
    for each, text in FILES.items():
        (tmp_path / "rl" / f"{each}.py").write_text("\n".join(line[4:] for line in text.splitlines()))
    file = tmp_path / "rl" / f"{name}.py"
    lines = enumerate(file.read_text().splitlines(), 1)
    wanted = {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
    found = sites(file.read_bytes(), str(file), Project())
    assert {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "item"} == wanted


GONE_THROUGH = b"""
import torch

class Trainer:
    def fit(self, dataset):
        for batch in dataset:
            self.model(batch).backward()
        self._note(dataset, batch)

    def _note(self, dataset, batch: torch.Tensor):
        print(batch.sum().item())  # cold
"""


def test_what_is_told_of_a_data_set_that_a_function_trains_on_batch_by_batch_runs_once() -> None:
    assert heat(GONE_THROUGH, "trainer.py") == {11: "cold"}
