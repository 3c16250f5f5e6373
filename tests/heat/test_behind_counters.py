"""What is called only where steps are counted runs as seldom as the lines beside its calls."""

from pathlib import Path

import pytest
from heat.called import heat, marked

UTIL = """
import torch

def bad(model, x: torch.Tensor):
    return x.sum().item() > clean(x)  # cold

def clean(x: torch.Tensor):
    return x.sum().item()  # cold

def often(x: torch.Tensor):
    return x.sum().item()  # hot

def few(x: torch.Tensor):
    return x.sum().item()  # hot

def both(x: torch.Tensor):
    return x.sum().item()  # hot

def kept(x: torch.Tensor):
    return x.sum().item()  # hot

def clipped(x: torch.Tensor):
    return x.sum().item()  # hot

class Net(torch.nn.Module):
    def norms(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def scale(self, x: torch.Tensor):
        return x.sum().item()  # hot
"""
TRAIN = """
import torch
import util
from util import both, clipped, often, few, kept, Net
from util import bad

def train(model: Net, loader, opt, accum_steps):
    hooks = []
    for step, x in enumerate(loader):
        model(x).sum().backward()
        opt.step()
        often(x)
        both(x)
        model.scale(x)
        if step % 2 == 0:
            few(x)
        if (step + 1) % accum_steps == 0:
            clipped(x)
        if step % 1000 == 0:
            both(x)
            model.norms(x)
            hooks.append(kept)
            CALL
"""
CALLS = ["if bad(model, x):\n                break", "print(bad(model, x))", "assert not util.bad(model, x)"]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_called_behind_a_counter_alone_seldom_runs(tmp_path: Path, call: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("CALL", call))
    path = tmp_path / "util.py"
    path.write_text(UTIL)
    assert heat(path) == marked(UTIL)


TOP = """
import torch
from util import bad

for step, x in enumerate(loader):
    model(x).sum().backward()
    if step % 1000 == 0 and bad(model, x):
        break
"""


def test_a_script_may_call_it_at_its_top_level(tmp_path: Path) -> None:
    path, train = tmp_path / "util.py", tmp_path / "train.py"
    path.write_text("import torch\n\ndef bad(model, x: torch.Tensor):\n    return x / x.sum().item()\n")
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    train.write_text(TOP)
    assert heat(path) == {4: "cold"}
    train.write_text(TOP.replace("step % 1000 == 0 and ", ""))
    assert heat(path) == {4: "hot"}


def test_what_another_file_calls_in_each_step_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "util.py"
    path.write_text(UTIL)
    (tmp_path / "train.py").write_text(TRAIN.replace("CALL", CALLS[0]))
    (tmp_path / "other.py").write_text(
        "import torch\nfrom util import bad\n\ndef train_step(model, x):\n    bad(model, x)\n    model(x).backward()\n"
    )
    told = heat(path)
    assert [told[5], told[8]] == ["hot", "hot"]


AGENT = """
import torch

class Agent:
    def step(self, x: torch.Tensor):
        self.steps += 1
        if self.steps % self.rollout_length == 0:
            self.train_agent(x)
            self.target(x)
        if self.steps % self.log_every == 0:
            self.told(x)

    def train_agent(self, x: torch.Tensor):
        self.returns(x).sum().backward()
        return x / x.sum().item()  # hot

    def returns(self, x: torch.Tensor):
        return x / x.sum().item()  # hot

    def target(self, x: torch.Tensor):
        return x / x.sum().item()  # hot

    def told(self, x: torch.Tensor):
        return x / x.sum().item()  # cold
"""


def test_an_arm_in_which_an_agent_learns_is_its_step(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    (tmp_path / "pyproject.toml").touch()
    path.write_text(AGENT)
    assert heat(path) == marked(AGENT)


TRAINER = """
import torch

class Trainer:
    def debug(self, output: torch.Tensor):
        raise NotImplementedError

    def run_epoch(self, loader, opt):
        for batch in loader:
            output = self.model(batch)
            output.sum().backward()
            if opt.debug > 0:
                self.debug(output)
            self.look(output)

class Boxes(Trainer):
    def debug(self, output: torch.Tensor):
        return output.max().item()  # cold

    def look(self, output: torch.Tensor):
        return output.max().item()  # hot

class Points(Boxes):
    def debug(self, output: torch.Tensor):
        super().debug(output)
        return output.min().item()  # cold
"""


def test_what_is_called_to_look_for_errors_alone_runs_seldom_in_each_class_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "trainer.py"
    path.write_text(TRAINER)
    (tmp_path / "main.py").write_text(
        "import torch\nfrom trainer import Boxes, Points\n\nBoxes().run_epoch(loader, opt)\n"
    )
    assert heat(path) == marked(TRAINER)
