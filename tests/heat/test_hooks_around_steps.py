"""Hooks of a training loop: the last part of a name says whether a step calls it, or it is called once for many of them."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

PLUGIN = """
import torch

class Plugin:
    @torch.no_grad()
    def after_backward(self, strategy, g: torch.Tensor):
        if torch.dot(g, self.reference) < 0:
            self.kept = self._project(g).item()  # hot

    def _project(self, g: torch.Tensor):
        return g * g.sum().item()  # hot

    @torch.no_grad()
    def before_training_iteration(self, x: torch.Tensor):
        x.sum().item()  # hot

    @torch.no_grad()
    def on_before_batch_end(self, x: torch.Tensor):
        x.sum().item()  # hot

    @torch.no_grad()
    def before_eval_iteration(self, x: torch.Tensor):
        x.sum().item()  # cold

    @torch.no_grad()
    def on_validation_batch_end(self, x: torch.Tensor):
        x.sum().item()  # cold

    def after_training_exp(self, x: torch.Tensor):
        self.means = self.prototypes(x)
        x.sum().item()  # cold

    def before_task(self, x: torch.Tensor):
        x.sum().item()  # cold

    def prototypes(self, x: torch.Tensor):
        return x / x.sum().item()  # cold

    def before_norm(self, x: torch.Tensor):
        return x / x.sum().item()  # hot

    def projected_backward(self, losses, x: torch.Tensor):
        self.set_gradients(x)

    def set_gradients(self, x: torch.Tensor):
        self.kept = x / x.sum().item()  # hot

    def supports_backward(self, x: torch.Tensor):
        self.set_flags(x)

    def set_flags(self, x: torch.Tensor):
        return x / x.sum().item()  # cold
"""
STEP = """
import torch

def train(loader, model, plugin):
    for x in loader:
        model(x).mean().backward()
        plugin.before_norm(x)
"""


def test_each_hook_is_as_it_is_marked(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    for name, text in {"__init__": "from .plugin import Plugin\n", "plugin": PLUGIN, "step": STEP}.items():
        (folder / f"{name}.py").write_text(text)
    path = folder / "plugin.py"
    lines = enumerate(PLUGIN.splitlines(), 1)
    marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# hot", "# cold"))}
    found = sites(PLUGIN.encode(), str(path), Project())
    assert {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "item"} == marked


FUSED = """
import torch
from torch.optim import Optimizer

class Fused(Optimizer):
    def __init__(self, model, zero3):
        self.on_gradient: Callable[[Any], Any] = (
            self.fused_by_parts() if zero3 else self.fused()
        )
        for p in model.parameters():
            p.register_hook(self.on_gradient)
            p.register_post_accumulate_grad_hook(scaled)
            p.register_hook(clipped(3.0))

    def fused(self):
        @torch.no_grad()
        def func(x: torch.Tensor):
            self.lr = x.sum().item()  # hot
        return func

    def fused_by_parts(self):
        @torch.no_grad()
        def func(x: torch.Tensor):
            self.lr = x.sum().item()  # hot
        return func

    @torch.no_grad()
    def spread(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def unused(self):
        @torch.no_grad()
        def func(x: torch.Tensor):
            self.lr = x.sum().item()  # cold
        return func

    def step(self, closure=None):
        return closure()

class Probe:
    def unused(self):
        def func(x: torch.Tensor):
            self.lr = x.sum().item()  # cold
        return func

def scaled(p: torch.Tensor):
    p.grad.mul_(p.sum().item())  # hot

def clipped(most):
    def hook(grad: torch.Tensor):
        return grad / max(grad.norm().item(), most)  # hot
    return hook

def looked_at(p: torch.Tensor):
    p.grad.mul_(p.sum().item())  # cold
"""


def test_what_is_hooked_runs_in_each_step(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "fused.py"
    path.write_text(FUSED)
    lines = enumerate(FUSED.splitlines(), 1)
    marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# hot", "# cold"))}
    found = sites(FUSED.encode(), str(path), Project())
    assert {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "item"} == marked


AMONG_DATA = """
import torch
from fastai.callback.core import Callback
from fastai.data.load import DataLoader
from ..measures import spread

class Mixed(Callback):
    def before_batch(self):
        self.share = self.x.sum().item()  # hot

class BatchesDL(DataLoader):
    def before_batch(self, b: torch.Tensor):
        return b / b.sum().item()  # cold

class MixedDataLoader(DataLoader):
    def before_batch(self, b: torch.Tensor):
        return b / b.sum().item()  # cold

class Scaled(Transform):
    def setups(self, o: torch.Tensor):
        self.mean = o.mean().item()  # cold

    def encodes(self, o: torch.Tensor):
        return spread(o) / o.sum().item()  # hot

    def decodes(self, o: torch.Tensor):
        return o * o.sum().item()  # cold

def prepared(o: torch.Tensor):
    return o / o.sum().item()  # cold
"""
MEASURES = """
import torch

def spread(o: torch.Tensor):
    return o / o.std().item()  # hot

def looked_at(o: torch.Tensor):
    return o / o.std().item()  # cold
"""


def test_hooks_of_a_step_and_transforms_of_a_batch_run_in_it_also_among_what_prepares_data(tmp_path: Path) -> None:
    (tmp_path / "net" / "data").mkdir(parents=True)
    files = {"__init__": "", "step": STEP, "measures": MEASURES, "data/__init__": "", "data/mixed": AMONG_DATA}
    for name, text in files.items():
        (tmp_path / "net" / f"{name}.py").write_text(text)
    for name in ("measures", "data/mixed"):
        path = tmp_path / "net" / f"{name}.py"
        lines = enumerate(path.read_text().splitlines(), 1)
        marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# hot", "# cold"))}
        found = sites(path.read_bytes(), str(path), Project())
        assert {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "item"} == marked


@pytest.mark.parametrize(
    ("counter", "told"), [("iter_num", "cold"), ("step_count", "cold"), ("width", "hot"), ("time", "hot")]
)
def test_a_counter_that_is_kept_under_its_name_counts_as_one_that_has_it(counter: str, told: str) -> None:
    code = f"""
import torch

def train(state, loader, model, every):
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        if state["{counter}"] % every == 0:
            print(loss.item())
"""
    assert heat(code.encode(), "run.py") == {9: told}


@pytest.mark.parametrize(
    "name", ["clip_grad_norm_", "clip_grad_norm", "clip_grads", "_clip_gradients", "clip_grad_by_value"]
)
def test_what_clips_gradients_runs_in_each_step_of_others_whoever_calls_it(name: str) -> None:
    code = f"""
import torch

class Sharded(torch.nn.Module):
    @torch.no_grad()
    def {name}(self, most):
        norm = torch.stack([each.grad.norm() for each in self.parameters()]).norm()
        return norm.item()
"""
    (found,) = [site for site in sites(code.encode(), "sharded.py") if site.op == "item"]

    assert found.hot
