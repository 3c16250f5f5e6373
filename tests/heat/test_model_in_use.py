"""What uses a model that has been trained is no step, though a name in steps may mean it: commands, servers, wrappers."""

from pathlib import Path

import pytest
from heat.called import heat, marked

NET = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return self.annotate_rows(x) + self.pooled(x) + self.kept.opened

    def annotate_rows(self, x: torch.Tensor):
        return x.sum().item()  # cold

    def pooled(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def train_step(self, x):
        self(x).sum().backward()
"""
COMMANDS = """
import click
import torch
from functools import partial

@click.group()
@click.option("--size")
def tool(size):
    pass

@tool.command("read")
def read(path):
    return partial(recognize, path)

def recognize(path):
    return rows_of(torch.load(path))

def rows_of(x: torch.Tensor):
    return x.sum().item()  # cold
"""
SERVER = """
import torch

class Server:
    def __enter__(self):
        return self.opened(torch.ones(3))

    def opened(self, x: torch.Tensor):
        return x.sum().item()  # cold
"""
STREAM = """
import torch
from .net import Net

class Stream(torch.nn.Module):
    async def __aenter__(self):
        return self.started(torch.ones(3))

    def started(self, x: torch.Tensor):
        return x.sum().item()  # cold
"""
CALIBRATED = """
import torch

class ConformalNet(torch.nn.Module):
    def forward(self, x):
        return self.sets(x)

    def sets(self, x: torch.Tensor):
        return x.sum().item()  # cold

class PosthocNet(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum().item()  # cold
"""
FILES = {
    "__init__": "from .net import Net\n",
    "net": NET,
    "commands": COMMANDS,
    "serve/__init__": "from .window import Server\n",
    "serve/window": SERVER,
    "stream": STREAM,
    "calibrated": CALIBRATED,
}


@pytest.mark.parametrize("name", ["net", "commands", "serve/window", "stream", "calibrated"])
def test_each_line_is_as_it_is_marked(tmp_path: Path, name: str) -> None:
    for each, text in FILES.items():
        path = tmp_path / "net" / f"{each}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert heat(tmp_path / "net" / f"{name}.py") == marked(FILES[name])
