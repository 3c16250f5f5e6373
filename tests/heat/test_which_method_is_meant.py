"""Which function or method a call in a step means, where several are called so."""

from pathlib import Path

import pytest
from heat.called import MODEL, PARTS, heat, marked

from syncscope.tensors.interpret import Project, sites


def test_what_a_module_under_another_name_holds_is_called(package: Path) -> None:
    model = package / "model.py"
    model.write_text("from . import parts as ops\n" + MODEL.replace("match(x)", "ops.set_scale(x)"))
    scaled = next(n for n, line in enumerate(PARTS.splitlines(), 1) if "set_scale" in line) + 1
    assert heat(package / "parts.py")[scaled] == "hot"


@pytest.mark.parametrize(("owner", "told"), [("F", "cold"), ("self.diffusion", "hot")])
def test_a_function_of_a_library_is_no_method_of_the_same_name(package: Path, owner: str, told: str) -> None:
    (package / "sampling.py").write_text(
        "import torch\n\nclass Diffusion:\n    @torch.no_grad()\n    def interpolate(self, x: torch.Tensor):\n"
        "        return x.sum().item()\n"
    )
    model = package / "model.py"
    model.write_text("import torch.nn.functional as F\n" + MODEL.replace("match(x)", f"{owner}.interpolate(x)"))
    assert heat(package / "sampling.py") == {6: told}


REGISTERED = """
import torch
from functools import singledispatch

@singledispatch
def ordered(x):
    raise NotImplementedError

@ordered.register
def of_tensor(x: torch.Tensor):
    return x / x.sum().item()  # hot

@singledispatch
def described(x):
    raise NotImplementedError

@described.register
def in_words(x: torch.Tensor):
    return x / x.sum().item()  # cold
"""


def test_what_is_registered_for_a_type_runs_where_the_function_does_that_it_is_registered_with(package: Path) -> None:
    path = package / "kinds.py"
    path.write_text(REGISTERED)
    model = package / "model.py"
    model.write_text("from .kinds import described, ordered\n" + MODEL.replace("match(x)", "ordered(x)"))
    assert heat(path) == marked(REGISTERED)


@pytest.mark.parametrize(("owner", "told"), [("subprocess", "cold"), ("self.solver", "hot")])
def test_a_function_of_a_library_speaks_of_no_method_of_its_name(package: Path, owner: str, told: str) -> None:
    path = package / "solving.py"
    path.write_text(
        "import torch\n\nclass Solver:\n    def run(self, x: torch.Tensor):\n        return x.sum().item()\n"
    )
    model = package / "model.py"
    model.write_text("import subprocess\n" + MODEL.replace("match(x)", f"{owner}.run(x)"))
    assert heat(path) == {5: told}


OVERRIDES = """
import torch

class Conditioner({above}):
    def {method}(self, x): ...

    def tokenize(self, x): ...
"""


@pytest.mark.parametrize(
    ("base", "method", "told"),
    [("Conditioner", "forward", "hot"), ("torch.nn.Module", "forward", "cold"), ("Conditioner", "aggregate", "cold")],
)
def test_what_overrides_a_method_of_a_module_is_one_that_a_call_may_mean(
    package: Path, base: str, method: str, told: str
) -> None:
    code = OVERRIDES.format(above="torch.nn.Module", method=method)
    for name in ("OfText", "OfWaves", "OfNotes", "OfImages"):
        code += f"\nclass {name}({base}):\n    def tokenize(self, x: torch.Tensor):\n        return x.sum().item()\n"
    path = package / "conditioners.py"
    path.write_text(code)
    model = package / "model.py"
    model.write_text(MODEL.replace("match(x)", "self.provider.tokenize(x)"))
    assert set(heat(path).values()) == {told}


GRAPHS = """
import torch

class PackedGraph:
    def split(self, sizes: torch.Tensor):
        return [sizes.sum().item()]  # {}

    def pieces(self):
        return self.split(torch.ones(3))
"""
SPLITS = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, graph, s):
        first, rest = {}.split([1, 2])
        return first.sum() + rest.sum()

    def train_step(self, x, graph, s):
        self.forward(x, graph, s).backward()
"""


@pytest.mark.parametrize(
    ("on", "said"), [("x", "cold"), ("s", "cold"), ("(x + 1)", "cold"), ("graph", "hot"), ("x.packed", "hot")]
)
def test_a_method_that_tensors_have_too_is_not_called_by_what_is_called_on_any_name(
    package: Path, on: str, said: str
) -> None:
    data = package / "data"
    data.mkdir()
    (data / "__init__.py").touch()
    (package / "splits.py").write_text(SPLITS.format(on))
    path = data / "graphs.py"
    path.write_text(GRAPHS.format(said))
    assert heat(path) == marked(path.read_text())


SCALER = """
import torch

class NativeScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer):
        self._scaler.scale(loss).backward()
        self._scaler.step(optimizer)

    def state_dict(self):
        return self._scaler.state_dict()
"""


@pytest.mark.parametrize(("said", "hot"), [("loss_scaler.state_dict()['scale']", True), ("net.state_dict()", False)])
def test_a_scaler_whose_scale_is_logged_in_each_step_is_asked_there(said: str, hot: bool, tmp_path: Path) -> None:
    loop = f"for x in loader:\n        loss_scaler(net(x), optimizer)\n        scale = {said}\n"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "scaling.py").write_text(SCALER)
    (tmp_path / "train.py").write_text(
        f"import torch\nfrom scaling import NativeScaler\ndef train_one_epoch(net, loader, optimizer, loss_scaler):\n    {loop}"
    )
    found = sites(SCALER.encode(), str(tmp_path / "scaling.py"), Project())
    assert [site.hot for site in found if site.op == "loss_scale"] == [hot]


LOGGERS = """
import torch

class Logger:
    def store(self, x: torch.Tensor):
        return x.sum().item()  # hot

class Tracker:
    def store(self, x: torch.Tensor):
        return x.sum().item()  # cold

class Buffer:
    def store(self, x: torch.Tensor):
        return x.shape

class Table(Buffer):
    def store(self, x: torch.Tensor):
        return x.shape

class Ring(Buffer):
    def store(self, x: torch.Tensor):
        return x.shape
"""


def test_a_logger_that_a_step_calls_by_its_kind_is_meant_among_many_of_that_name(package: Path) -> None:
    path = package / "loggers.py"
    path.write_text(LOGGERS)
    model = package / "model.py"
    model.write_text(MODEL.replace("match(x)", "self._logger.store(x)"))
    assert heat(path) == marked(LOGGERS)
