"""What sounds like a part of a step, or is said where one is, and is none."""

from pathlib import Path

from heat.called import heat, marked

SET_UP = """
import torch

class Edge:
    def __init__(self, x: torch.Tensor):
        self.size = x.sum().item()  # cold

class Graph:
    def __init__(self, world):
        self.peers = [self._made(rank) for rank in range(world)]

    def _made(self, rank):
        peer = self._rotate_backward(rank, 1)
        return Edge(torch.ones(peer).cuda())

    def _rotate_backward(self, rank, by):
        return rank - by

class Trainer:
    def train_step(self, batch):
        return self._update(batch)

    def _update(self, batch):
        self.loss_backward(batch)
        return Corner(batch)

class Corner:
    def __init__(self, x: torch.Tensor):
        self.size = x.sum().item()  # hot
"""


def test_what_gives_something_back_runs_no_backward_pass(tmp_path: Path) -> None:
    path = tmp_path / "graph.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(SET_UP)
    assert heat(path) == marked(SET_UP)


SHARDED = """
import torch

class Scaler:
    def step(self, optimizer):
        kept = optimizer.state_dict()
        kept["scale"] = self.scale
        return optimizer.step()

class Sharded(torch.optim.Optimizer):
    def step(self, closure=None):
        return closure()

    def consolidate_state_dict(self):
        return self.total.sum().item()  # cold

    def state_dict(self):
        self.consolidate_state_dict()
        return {"total": self.total.mean().item()}  # cold

class Kept(Sharded):
    def step(self, closure=None):
        self.last = self.whole_state_dict()

    def whole_state_dict(self):
        return self.total.sum().item()  # hot
"""


def test_any_optimizer_has_a_state_so_that_asking_for_it_means_none(tmp_path: Path) -> None:
    path = tmp_path / "sharded.py"
    (tmp_path / "pyproject.toml").touch()
    text = SHARDED.replace("self.total.", "torch.ones(3).cuda().")
    path.write_text(text)
    assert heat(path) == marked(text)


PREDICTS = """
import torch

class Predictor:
    def __init__(self, model, first):
        self.model = model
        self.batch_predict = first(self.batch_predict)
        self.losses = {"boxes": self.predict_boxes}

    def batch_predict(self, data):
        return [self._predict(x) for x in data]

    def _predict(self, x: torch.Tensor):
        return x.cuda().sum().item()  # cold

    def predict_one(self, x: torch.Tensor):
        return x.cuda().sum().item()  # cold

    def train_step(self, x):
        self.model(x).backward()

class Wrapped(Predictor):
    def train_step(self, x):
        self._forecast(x)

    def _forecast(self, x: torch.Tensor):
        return x.cuda().sum().item()  # hot
"""


def test_what_wraps_a_method_under_its_own_name_calls_it_in_no_step(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(PREDICTS)
    assert heat(path) == marked(PREDICTS)


CALIBRATED = """
import torch
import pandas as pd

class Scaling(torch.nn.Module):
    def forward(self, x):
        return x / x.sum().item()  # hot

    def train_calibration(self, x: torch.Tensor, y: torch.Tensor):
        before = self.loss(x, y).item()  # cold
        optimizer = torch.optim.LBFGS([self.temperature])

        def closure():
            loss = self.loss(x, y) + self.terms(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        return before

    def terms(self, x: torch.Tensor):
        return x.cuda().sum().item()  # cold

class Embedding:
    def __call__(self, df: pd.DataFrame) -> pd.DataFrame:
        df["size"] = self.model(df).cuda().sum().item()  # cold
        return df

class Embedded:
    def __call__(self, x: torch.Tensor):
        return x.cuda().sum().item()  # hot
"""


def test_what_is_calibrated_is_trained_and_a_table_is_data(tmp_path: Path) -> None:
    path = tmp_path / "scaling.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(CALIBRATED)
    assert heat(path) == marked(CALIBRATED)


QUEUED = """
import torch
from torch.autograd import Variable

class Scale:
    def attach(self, p):
        p.register_hook(self._each)

    def _each(self, grad):
        Variable._execution_engine.queue_callback(self._all)

    def _all(self):
        if self.calls % self.grads_to_accum != 0:
            return
        self.total = torch.ones(3).cuda().sum().item()  # hot

    def _nobody(self):
        self.total = torch.ones(3).cuda().sum().item()  # cold

class Trainer:
    def train_step(self, x):
        x.sum().backward()
"""


def test_what_is_queued_behind_a_backward_pass_runs_in_each(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(QUEUED)
    assert heat(path) == marked(QUEUED)


SCRIPTED = """
import torch

class _TextPostprocessing(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum().item()  # cold

class _TextPreprocessing(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum().item()  # cold

class ScalePreprocessing(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x / x.sum().item()  # hot

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale_preprocessing = ScalePreprocessing()

    def forward(self, x: torch.Tensor):
        return self.scale_preprocessing(x) / x.sum().item()  # hot
"""


def test_what_is_before_and_behind_a_model_that_is_used_is_a_part_of_steps_that_call_it(tmp_path: Path) -> None:
    path = tmp_path / "features.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(SCRIPTED)
    assert heat(path) == marked(SCRIPTED)
