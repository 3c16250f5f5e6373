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


ASKED_ONCE = """
import torch

class EarlyStopping:
    def __init__(self):
        self.best, self.bad = None, 0

    def __call__(self, v: torch.Tensor):
        self.bad += v.item()  # {once}
        return self.bad > 5

class Best:
    def offer(self, v: torch.Tensor):
        return v.item()  # {once}

    def note(self, v: torch.Tensor):
        return v.item()  # hot

def summed(v: torch.Tensor):
    return v.item()  # {once}

def train(model, loader, optimizer, log=None):
    stop = EarlyStopping() if log is None else None
    best = Best()
    for epoch in range(100):
        for x in loader:
            loss = model(x).mean()
            loss.backward()
            optimizer.step()
            best.note(loss)
            {within}
        if stop is not None and stop(loss):
            break
        print(best.offer(loss), summed(loss))
    {after}
"""


@pytest.mark.parametrize(
    ("within", "after", "once"),
    [
        ("pass", "return best.last", "cold"),
        ("stop(loss); best.offer(loss); summed(loss)", "return best.last", "hot"),
        ("pass", "log(stop, best, summed)", "hot"),
    ],
    ids=["beside the steps", "in them, too", "handed on"],
)
def test_what_a_training_loop_calls_beside_its_steps_runs_in_none(tmp_path, within, after, once):
    code = ASKED_ONCE.format(within=within, after=after, once=once)
    (tmp_path / "train.py").write_text(code)
    assert heat(tmp_path / "train.py") == marked(code)


LOADED = """
import torch

def _ensure_flag(state_dict, prefix, *rest):
    state_dict[prefix + "flag"] = torch.tensor(state_dict["x"].sum().item())  # cold

def _fill_flag(state_dict, prefix, *rest):
    return state_dict["x"].sum().item()  # hot

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._register_load_state_dict_pre_hook(_ensure_flag)
        self.register_state_dict_post_hook(_fill_flag)
        self.register_load_state_dict_post_hook(self._sized)

    def _sized(self, module, keys):
        self.size = self.weight.sum().item()  # cold

    def forward(self, x: torch.Tensor):
        return x * _fill_flag({"x": x}, "")
"""


def test_what_is_called_where_a_state_is_loaded_runs_in_no_step(tmp_path):
    (tmp_path / "model.py").write_text(LOADED)
    assert heat(tmp_path / "model.py") == marked(LOADED)
