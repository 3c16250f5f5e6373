"""What evaluates beside what trains, what `fit` prepares before its loop, and how an episode begins, is no step."""

from pathlib import Path

import pytest
from heat.called import heat, marked

EVALUATES = """
import torch

class Early(torch.nn.Module):
    def forward(self, x, return_loss=True):
        if return_loss:
            return self.forward_train(x)
        return self.forward_test(x)

    def forward_train(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def forward_test(self, x):
        return self.simple_test(x)

    def simple_test(self, x):
        return self.simple_test_boxes(x)

    def simple_test_boxes(self, x: torch.Tensor):
        return x.sum().item()  # cold

class Either(torch.nn.Module):
    def forward(self, x, mode="loss"):
        if mode == "loss":
            return self.loss(x)
        else:
            return self.predict_by_feat(x)

    def loss(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def predict_by_feat(self, x: torch.Tensor):
        return x.sum().item()  # cold

class Parts(torch.nn.Module):
    def forward(self, x):
        if self.two_stage:
            return self.proposals(x)
        return self.predict_masks(x)

    def proposals(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def predict_masks(self, x: torch.Tensor):
        return x.sum().item()  # hot
"""
FITS = """
import torch

class Detector:
    def fit(self, data):
        x, s = self.process_graph(data)
        batches = self.split_graph(data)
        step = self.made_step(x)
        self.threshold = self.weighed(x)
        for batch in batches:
            loss = step(self.net(batch, self.weighed(s)))
            loss.backward()
            self.optimizer.step()

    def process_graph(self, data: torch.Tensor):
        return data / data.sum().item(), data  # cold

    def split_graph(self, data: torch.Tensor):
        for each in data:
            yield each / each.sum().item()  # hot

    def made_step(self, x: torch.Tensor):
        def step(y: torch.Tensor):
            return y / y.sum().item()  # hot
        return step

    def weighed(self, x: torch.Tensor):
        return x / x.sum().item()  # hot
"""
RESETS = """
import torch

class Drive:
    def reset(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def step(self, x: torch.Tensor):
        self.sim.reset(x)
        return x.sum().item()  # hot

    def render(self):
        pass

class AutoEnv:
    def reset(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def step(self, x):
        return self.reset(x)

class Carry:
    def reset(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def step(self, x):
        return x
"""


@pytest.mark.parametrize("code", [EVALUATES, FITS, RESETS])
def test_what_stands_beside_the_steps_is_cold(tmp_path: Path, code: str) -> None:
    path = tmp_path / "parts" / "model.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").touch()
    path.write_text(code)
    assert heat(path) == marked(code)
