"""What waits cost by one recording is one figure, whichever command is asked for it."""

import re

import pytest
from analysis.test_what_if_loops import NETWORK, PASS, recorded
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands

SOURCE = """\
import torch
def train(model, batches):
  for batch in batches:
    model(batch).mean().backward()
    total = 0.0
    for image in batch:
        score = model.body(image)
        total += torch.sigmoid(score).sum().item()
""".replace("\n", "\n" * 50, 1)  # the last line is the 57th


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SOURCE)
    kineto.save(recorded([[*NETWORK, *PASS * 8]] * 12), tmp_path / "run.json.gz")
    return lambda *args: CliRunner(env={"COLUMNS": "400"}).invoke(commands, args)


def test_a_report_the_linter_and_a_limit_say_one_figure(asked):
    report = asked("report", "run.json.gz").stdout
    figure, alone = re.findall(r"is likely (\d+ %) shorter \(", report)
    assert figure != alone
    told = asked("lint", "train.py", "--isolated", "--no-cache", "--trace", "run.json.gz").stderr
    assert f"is likely {figure} shorter" in told
    for limit in ("1%", "99%"):
        told = asked("report", "run.json.gz", "--max-saving", limit).stderr
        assert f"the syncs likely cost {figure} of a step" in told
        assert f"the limit is held to {alone} (" in told
