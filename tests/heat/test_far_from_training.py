"""A file in which nothing trains, and which nothing that trains imports, is the start of no step, whatever it calls so."""

from pathlib import Path

import pytest
from heat.called import heat, marked

NET = """
import torch

from .pooled import pool
from .registry import METHODS

class Net(torch.nn.Module):
    def forward(self, x):
        return pool(METHODS["scaled"](x))
"""
POOLED = """
import torch

class Pool:
    def __call__(self, x):
        return self.of_rows(x)

    def of_rows(self, x: torch.Tensor):
        return x.sum().item()  # hot

def pool(x):
    return Pool()(x)
"""
SCALED = """
import torch
from .registry import register

@register("scaled")
class Scaled:
    def __call__(self, x):
        return self.by_its_sum(x)

    def by_its_sum(self, x: torch.Tensor):
        return x / x.sum().item()  # hot
"""
INDEX = """
import torch

from .clusters import Clusters

class Index:
    def __init__(self):
        self.clusters = Clusters()

    def train(self, sample):
        self.clusters.split_rows(sample)

    def __call__(self, query):
        return self.rows_of(query)

    def rows_of(self, query: torch.Tensor):
        return query.sum().item()  # cold
"""
CLUSTERS = """
import torch

class Clusters:
    def split_rows(self, rows: torch.Tensor):
        return rows.sum().item()  # cold
"""
FILES = {
    "__init__": "from .net import Net\nfrom .index import Index\n",
    "net": NET,
    "pooled": POOLED,
    "registry": "METHODS = {}\n\ndef register(name):\n    return lambda cls: METHODS.setdefault(name, cls)\n",
    "scaled": SCALED,
    "index": INDEX,
    "clusters": CLUSTERS,
}


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    folder = tmp_path / "net"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize("name", ["pooled", "scaled", "index", "clusters"])
def test_what_nothing_that_trains_imports_is_no_step(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, FILES)

    assert heat(folder / f"{name}.py") == marked(FILES[name])


@pytest.mark.parametrize(
    "text", [NET.replace("\nfrom .pooled", "\nfrom .index import Index\nfrom .pooled"), NET + "\nfrom . import Index\n"]
)
def test_what_trains_may_hold_what_it_imports(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, FILES | {"net": text})

    assert set(heat(folder / "index.py").values()) == {"hot"}


def test_a_project_without_any_training_is_left_to_its_names(tmp_path: Path) -> None:
    folder = written(tmp_path, {"__init__": "from .index import Index\n", "index": INDEX, "clusters": CLUSTERS})

    assert set(heat(folder / "index.py").values()) == {"hot"}
