"""What is told in a line, as nothing in the project asks for what it stands in."""

import json

import pytest

LOSS = """
import math

import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, alpha=None, kind="mean", gamma=2.0, smooth=True, deep=False):
        super().__init__()
        self.alpha = alpha
        self.kind = kind
        self.gamma = gamma
        self.smooth = smooth
        self.deep = bool(deep)

    def forward(self, x: torch.Tensor, *, weigh=None):
        if self.alpha is not None:
            x = x * torch.tensor(0.5, device=x.device)  # asked for: alpha
        if self.kind == "sum":
            x = x * torch.tensor(0.6, device=x.device)  # asked for: kind
        elif self.kind in ("mean", "none"):
            x = x * torch.tensor(0.7, device=x.device)  # always
        if not self.smooth:
            return x * torch.tensor(0.8, device=x.device)  # asked for: smooth
        if self.gamma > 3:
            x = x * torch.tensor(0.9, device=x.device)  # asked for: gamma
        if weigh is not None and x.dim() > 1:
            x = x * torch.tensor(1.5, device=x.device)  # asked for: weigh
        if self.deep or self.alpha is not None:
            x = x * torch.tensor(1.6, device=x.device)  # asked for: deep
        return x * torch.tensor(1.7, device=x.device)  # always
"""
TRAIN = """
import torch

from .loss import Loss


def train(model, loader, optimizer):
    loss = Loss({given})
    for x in loader:
        optimizer.zero_grad()
        loss(model(x){more}).sum().backward()
        optimizer.step()
"""


def told(door, **files: str) -> tuple[set[int], set[int]]:
    """The lines of `loss.py` with a fix, and those that are told in a line."""
    door.write("lib/__init__.py", "")
    for name, text in files.items():
        door.write(f"lib/{name}.py", text)
    found = json.loads(door("lint", "--format", "json", "lib/loss.py").out)
    return {f["line"] for f in found if f["fix"] is not None}, {f["line"] for f in found if f["also"]}


def marked(said: str) -> set[int]:
    return {n for n, row in enumerate(LOSS.splitlines(), 1) if f"# {said}" in row}


def test_an_arm_that_defaults_never_reach_is_told_in_a_line(door):
    fixed, also = told(door, loss=LOSS, train=TRAIN.format(given="", more=""))
    assert fixed == marked("always")
    assert also == marked("asked for")


@pytest.mark.parametrize(
    ("given", "more", "on"),
    [
        ("alpha=0.25", "", {"alpha", "deep"}),
        ("0.25", "", {"alpha", "deep"}),
        ("None, 'sum'", "", {"kind"}),
        ("smooth=model.rough", "", {"smooth"}),
        ("gamma=4.0", "", {"gamma"}),
        ("gamma=2.0, smooth=True", "", set()),
        ("alpha=args.alpha", "", set()),
        ("deep=True", "", {"deep"}),
        ("", ", weigh=x", {"weigh"}),
        ("*args", "", {"alpha", "kind", "smooth", "gamma", "deep"}),
    ],
)
def test_what_something_in_the_project_asks_for_keeps_its_fix(door, given, more, on):
    fixed, _ = told(door, loss=LOSS, train=TRAIN.format(given=given, more=more))
    assert fixed == marked("always") | {n for each in on for n in marked(f"asked for: {each}")}


MADE = """
import torch
from torch import Tensor, inf


def make_loss(model, scale=1.0, own=False):
    def step(x):
        if own:
            x = x * torch.tensor(0.5, device=x.device)  # asked for
        return model(x) * torch.tensor(0.75, device=x.device)  # always

    return step


def norm(x: Tensor, kind: int = 2):
    if kind == inf:
        x = x * torch.tensor(0.25, device=x.device)  # asked for
    return x * torch.tensor(0.125, device=x.device)  # always
"""
USED = """
from .loss import make_loss, norm


def train(model, loader, optimizer):
    step = make_loss(model{given})
    for x in loader:
        optimizer.zero_grad()
        norm(step(x){more}).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "more", "on"), [("", "", []), (", own=True", "", [9]), ("", ", kind=float('inf')", [17])]
)
def test_a_function_has_the_parameters_of_the_one_around_it_and_numbers_may_be_imported(door, given, more, on):
    rows = MADE.splitlines()
    fixed, also = told(door, loss=MADE, train=USED.format(given=given, more=more))
    assert fixed == {n for n, row in enumerate(rows, 1) if "# always" in row} | {*on}
    assert also == {n for n, row in enumerate(rows, 1) if "# asked for" in row} - {*on}


@pytest.mark.parametrize(
    ("name", "text", "on"),
    [
        ("lib/options.py", 'parser.add_argument("--alpha", type=float, default=None)\n', False),
        ("lib/options.py", 'parser.add_argument("--alpha", type=float, default=0.25)\n', True),
        ("lib/options.py", 'DEFAULTS = {"alpha": 0.25}\n', True),
        ("lib/options.py", 'DEFAULTS = {"alpha": None}\n', False),
        ("lib/options.py", "class Options:\n    alpha: float = 0.25\n", True),
        ("lib/conf/loss.yaml", "alpha: null\n", False),
        ("lib/conf/loss.yaml", "alpha: 0.25\n", True),
        ("lib/run.sh", "python -m lib.train --alpha 0.25\n", True),
        ("tests/test_loss.py", "loss = Loss(alpha=0.25)\n", False),
    ],
)
def test_options_and_settings_may_ask_for_it_and_tests_do_not_count(door, name, text, on):
    door.write(name, text)
    door.write("setup.py", "")
    fixed, _ = told(door, loss=LOSS, train=TRAIN.format(given="alpha=args.alpha", more=""))
    assert (marked("asked for: alpha") <= fixed) is on


ROWS = """
import torch


def training_step(x: torch.Tensor):
    {test}
        return x * torch.tensor(0.5, device=x.device)
    return x.sum()
"""


@pytest.mark.parametrize(
    ("test", "fixed"),
    [
        ("if x.shape[0] == 1:", False),
        ("if not len(x) > 1:", False),
        ("if x.size(0) < 2 and x.dim() > 1:", False),
        ("if x.shape[1] == 1:", True),
        ("if x.shape[0] > 1:", True),
        ("if len(x) == 1 or x.dim() > 1:", True),
        ("num_points = len(x)\n    if num_points == 1:", False),
        ("num_classes = x.shape[1]\n    if num_classes == 1:", True),
        ("B = x.size(0)\n    if B < 2:", False),
        ("b, d = x.shape\n    if b <= 1:", False),
        ("b, d = x.shape\n    if d <= 1:", True),
        ("models = len(x)\n    models = 2 * models\n    if models < 2:", True),
        ("for n in range(3):\n      if n == 0:", True),
    ],
)
def test_what_runs_for_one_row_alone_is_told_in_a_line(door, test, fixed):
    door.write("step.py", ROWS.format(test=test))
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert found["hot"]
    assert (found["fix"] is not None, found["also"]) == (fixed, not fixed)


def test_what_runs_before_two_were_counted_is_told_in_a_line(door):
    door.write(
        "loss.py",
        """
import torch
from torch import nn


class VarianceLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor):
        self.count += 1
        if self.count < 2:
            return torch.tensor(0.0, device=x.device)
        return x.var()
""",
    )
    (found,) = json.loads(door("lint", "--format", "json", "loss.py").out)
    assert found["hot"]
    assert (found["fix"], found["also"]) == (None, True)


LEFT = """
import torch


def training_step(x: torch.Tensor):
    {left}
    return x * torch.tensor(0.5, device=x.device)
"""


@pytest.mark.parametrize(
    ("left", "fixed", "said"),
    [
        ("if x.size(0) != 1: raise ValueError", True, "in the training step"),
        ("if not len(x) == 1: raise ValueError", True, "in the training step"),
        ("if x.shape[0] > 1: return x.sum()", False, "only when `x.shape[0] <= 1`: there is next to nothing"),
        ("if x.numel(): return x.sum()", False, "only when `not x.numel()`: there is next to nothing"),
    ],
)
def test_what_is_behind_a_test_runs_where_it_did_not_hold(door, left, fixed, said):
    """And what an error refuses nobody gives: what is behind that runs for all that is given."""
    door.write("step.py", LEFT.format(left=left))
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert (found["fix"] is not None) is fixed
    assert said in found["heat"]


EARLY = """
import torch


class Net:
    def training_step(self, x: torch.Tensor):
        {code}
        return self.kept(x).mean()
"""


@pytest.mark.parametrize(
    ("code", "fixed"),
    [
        ("if self.kept is None: return torch.tensor(0.0, device=x.device)", False),
        ("if self.wide: x = x + torch.tensor(0.0, device=x.device)", True),
        ("if self.wide: return self.kept(torch.tensor(0.0, device=x.device))", True),
        ("return torch.tensor(0.0, requires_grad=True, device=x.device)", False),
        ("if self.use_cache: x = x + torch.tensor(0.5, device=x.device)", False),
    ],
)
def test_where_a_number_is_given_in_place_of_a_result_there_is_next_to_nothing(door, code, fixed):
    door.write("step.py", EARLY.format(code=code))
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert found["hot"]
    assert (found["fix"] is not None) is fixed


def test_where_all_else_is_refused_an_arm_runs_for_all(door):
    door.write(
        "step.py", ROWS.format(test="if x.shape[0] == 1:").replace("    return x.sum()", "    else: raise ValueError")
    )
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert found["fix"] is not None


GATHERED = """
import torch
from torch.utils.data import DataLoader


def train(model, data, optimizer, device):
    check = DataLoader(data, pin_memory=True)
    while True:
        x, y = {batch}
        loss = model(x.to(device))
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("batch", "fixed"), [("next(data.loader)", True), ("data.get_batch()", False)])
def test_what_a_call_puts_together_no_loader_has_pinned(door, batch, fixed):
    door.write("train.py", GATHERED.format(batch=batch))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    assert any(f["fix"] is not None for f in found) is fixed


def test_comments_between_arguments_are_gone_through_once(door):
    """Each sign of a comment may begin one: looked at in all ways, a line of forty takes longer than anybody waits."""
    door.write("lib/notes.py", f"notes = dict(\n    {'# ' * 400}\n)\nALPHA = 'alpha'\nalpha = notes\n")
    assert told(door, loss=LOSS, train=TRAIN.format(given="", more=""))[0] == marked("always")


OPTIONS = """
import torch


class Net(torch.nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.individual = configs.individual

    def forward(self, x: torch.Tensor):
        if self.individual:
            x = x * torch.tensor(0.5, device=x.device)
        return x
"""


@pytest.mark.parametrize(
    ("options", "fixed"),
    [
        ('parser.add_argument("--individual", action="store_true", default=False)', False),
        ('parser.add_argument("--individual", action="store_false")', True),
        ('parser.add_argument("--individual", type=int, default=3)', True),
        ("", True),
    ],
)
def test_an_option_that_is_off_unless_a_command_says_otherwise(door, options, fixed):
    kept, also = told(door, loss=OPTIONS, options=f"import argparse\nparser = argparse.ArgumentParser()\n{options}\n")
    assert (kept, also) == (({12}, set()) if fixed else (set(), {12}))
