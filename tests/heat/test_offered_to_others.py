"""What a package offers is told in a line where it stands among operators, and what a step makes anew is no set-up."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

STEP = """
import torch
from .inputs import Checked, Field

class Solver(torch.nn.Module):
    def __init__(self, points):
        super().__init__()
        self.once = Kept(points)

    def forward(self, x):
        if self.cache is None:
            self.cache = Seldom(x)
        return Field(Checked(x=x).x)

class Kept:
    def __init__(self, x: torch.Tensor):
        self.total = x.sum().item()  # cold

class Seldom:
    def __init__(self, x: torch.Tensor):
        self.total = x.sum().item()  # cold
"""
INPUTS = """
import torch
from pydantic import BaseModel, field_validator, model_validator

class Checked(BaseModel):
    x: torch.Tensor

    @field_validator("x")
    @classmethod
    def check_values(cls, x: torch.Tensor):
        return to_positive_value(x) / x.sum().item()  # whole

    @model_validator(mode="after")
    def check_all(self):
        if (self.x > 0).any():  # whole
            raise ValueError

def to_positive_value(x: torch.Tensor):
    return x / x.sum().item()  # whole

class Field:
    def __init__(self, x: torch.Tensor):
        self.x = x
        self.total = x.sum().item()  # whole

class Settings:
    def __init__(self, x: torch.Tensor):
        self.total = x.sum().item()  # cold
"""
FUNCTIONAL = """
import torch

def knots(x: torch.Tensor):
    return validate_points(x) / _scale(x) / x.sum().item()  # short

def validate_points(x: torch.Tensor):
    return x / x.sum().item()  # short

def _scale(x: torch.Tensor):
    return x / x.sum().item()  # short

def not_offered(x: torch.Tensor):
    return x / x.sum().item()  # cold

def plot_points(x: torch.Tensor):
    return x / x.sum().item()  # cold

class Manifold:
    def distance(self, x: torch.Tensor):
        return x / x.sum().item()  # short

    def _inner(self, x: torch.Tensor):
        return x / x.sum().item()  # cold
"""
POINTS = """
import torch

__all__ = ["moments"]

def moments(x: torch.Tensor):
    return _spread(x) / x.sum().item()  # cold

def _spread(x: torch.Tensor):
    return x / x.sum().item()  # cold

def rows_to_device(x: torch.Tensor):
    return x / x.sum().item()  # short

WAYS = {"moments": moments, "spread": _spread}  # of a library, for who looks into it
"""
FILES = {
    "__init__": """
from .functional import Manifold, knots, plot_points
from .points import moments, rows_to_device

NAMES = {"points": ["moments"]}
""",
    "index": "NAMES = {'torch.points.moments': 'points.html'}\n",
    "step": STEP,
    "inputs": INPUTS,
    "functional": FUNCTIONAL,
    "points": POINTS,
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "net"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def told(path: Path) -> dict[int, str]:
    """How much is told of each line with a wait."""
    found = sites(path.read_bytes(), str(path), Project())
    return {site.place.line: "whole" if site.whole else "short" if site.hot else "cold" for site in found}


@pytest.mark.parametrize("name", ["step", "inputs", "functional", "points"])
def test_each_line_is_told_as_it_is_marked(package: Path, name: str) -> None:
    path = package / f"{name}.py"
    lines = enumerate(path.read_text().splitlines(), 1)
    marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# whole", "# short", "# cold"))}
    assert told(path) == marked


def test_all_public_names_of_a_module_that_is_offered_are(package: Path) -> None:
    (package / "__init__.py").write_text("from . import functional\n")
    lines = (package / "functional.py").read_text().splitlines()
    assert told(package / "functional.py")[lines.index("def not_offered(x: torch.Tensor):") + 2] == "short"


def test_what_no_file_of_a_library_imports_is_for_those_who_install_it(tmp_path: Path) -> None:
    files = {
        "__init__": "from .model import Net\n",
        "model": "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n",
        "ops/__init__": "",
        "ops/pooling": "import torch\n\ndef pooled(x: torch.Tensor):\n    return x / x.sum().item()\n",
        "tool": "import torch\n\ndef shown(x: torch.Tensor):\n    return x / x.sum().item()\n\nif '__main__':\n    1\n",
    }
    for name, text in files.items():
        path = tmp_path / "net" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def heat(name: str) -> str:
        path = tmp_path / "net" / f"{name}.py"
        (site,) = sites(path.read_bytes(), str(path), Project())
        return site.heat.words

    assert heat("ops/pooling") == "`pooled` is for the steps of others: its package offers it"
    assert heat("tool") == "nobody imports `shown`, and nothing that is used speaks of it"


def test_what_a_base_of_another_library_calls_in_each_step_is_not_left_to_others(tmp_path: Path) -> None:
    conv = """
import torch
from torch_geometric.nn import MessagePassing

class Conv(MessagePassing):
    def forward(self, x, edges):
        return self.propagate(edges, x=x)

    def message(self, x_j: torch.Tensor):
        return x_j / x_j.sum().item()

    def told(self, x_j: torch.Tensor):
        return x_j / x_j.sum().item()
"""
    package = tmp_path / "net"
    package.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (package / "__init__.py").write_text("from .conv import Conv\n")
    path = package / "conv.py"
    path.write_text(conv)
    assert [site.whole for site in sites(path.read_bytes(), str(path), Project())] == [True, False]


MEASURES = """
import torch

def masked_mape(prediction: torch.Tensor, targets: torch.Tensor):
    zeros = torch.tensor(0.0).to(targets.device)  # hot
    return ((prediction - targets) / (targets + zeros)).abs().float().mean()

def accuracy(prediction: torch.Tensor, targets: torch.Tensor):
    zeros = torch.tensor(0.0).to(targets.device)  # cold
    return ((prediction > zeros) == targets).float().mean().item()

def spread(values: torch.Tensor):
    zeros = torch.tensor(0.0).to(values.device)  # cold
    return (values - zeros).std()
"""


def test_a_measure_that_compares_and_reads_nothing_may_be_trained_on(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "casts" / "metrics").mkdir(parents=True)
    (tmp_path / "casts" / "__init__.py").write_text("from .metrics.errors import *\n")
    (tmp_path / "casts" / "metrics" / "__init__.py").touch()
    file = tmp_path / "casts" / "metrics" / "errors.py"
    file.write_text(MEASURES)
    lines = enumerate(MEASURES.splitlines(), 1)
    marks = {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
    found = sites(MEASURES.encode(), str(file), Project())
    assert {s.place.line: "hot" if s.hot else "cold" for s in found if s.op == "created_on_host"} == marks
