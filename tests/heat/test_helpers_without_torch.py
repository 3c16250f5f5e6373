"""A helper whose file does not name torch is part of the step that calls it, whatever its file is called."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope.cli import commands

METRICS = """
def accuracy(logits, y):
    return (logits.argmax(1) == y).float().mean().item()

def largest(logits, y):
    return logits.max().item()
"""
TRAIN = """
import torch
from torch.nn import functional as F

from metrics import accuracy, largest

model = torch.nn.Linear(64, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def evaluate(loader):
    return max(largest(model(x.cuda()), y.cuda()) for x, y in loader)

def train(loader):
    for x, y in loader:
        logits = model(x)
        optimizer.zero_grad()
        F.cross_entropy(logits, y).backward()
        optimizer.step()
        print(accuracy(logits, y))
"""


def test_what_a_training_loop_calls_is_hot_and_what_the_evaluation_calls_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, code in {"pyproject.toml": "", "metrics.py": METRICS, "train.py": TRAIN}.items():
        Path(name).write_text(code)
    ran = CliRunner().invoke(commands, ["lint", "--all", "--no-cache", "--format", "json", "."])
    found = [each for each in json.loads(ran.stdout) if each["path"] == "metrics.py"]
    assert {each["line"]: each["hot"] for each in found} == {3: True, 6: False}


METERS = """
{arrays}
class Meter:
    def update(self, value, n=1):
        self.sum += value.item() * n

class Meters:
    def update(self, name, value):
        self.meters[name].update(value)
"""
FIT = """
import torch
from torch.nn import functional as F

from meters import Meters

class Trainer:
    def __init__(self, model):
        self.model, self.meters = model.cuda(), Meters()

    def train_step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.meters.update("loss", loss)
"""


@pytest.mark.parametrize(("arrays", "lines"), [("", [5]), ("import numpy as np", [])])
def test_a_meter_that_another_of_its_file_holds_reads_what_a_step_hands_on(tmp_path, monkeypatch, arrays, lines):
    monkeypatch.chdir(tmp_path)
    for name, code in {"pyproject.toml": "", "meters.py": METERS.format(arrays=arrays), "fit.py": FIT}.items():
        Path(name).write_text(code)
    ran = CliRunner().invoke(commands, ["lint", "--all", "--no-cache", "--format", "json", "meters.py"])
    assert [each["line"] for each in json.loads(ran.stdout) if each["hot"]] == lines
