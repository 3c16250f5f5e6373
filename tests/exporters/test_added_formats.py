"""A format is a file: dropped into the folder, every command offers it that has what it takes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope import exporters, kineto
from syncscope.cli import commands
from syncscope.model.trace import Event, Kind, Lane, Trace

COUNT = '''"""How many there are."""

SUFFIX = ".count"
TAKES = {"findings"}


def export(report):
    return f"{len(report.findings)} findings\\n"
'''
SPAN = '''"""How long the recording is."""

SUFFIX = ".span.count"
TAKES = {"trace"}


def export(report):
    return f"{int(report.trace.end.max())} ns\\n"
'''
CODE = """import torch

def train(x: torch.Tensor):
    return x.cuda().item()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "dropped"
    folder.mkdir()
    (folder / "count.py").write_text(COUNT)
    (folder / "span.py").write_text(SPAN)
    monkeypatch.setattr(exporters, "__path__", [*exporters.__path__, str(folder)])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(CODE)
    lane = Lane(1, 1)
    kineto.save(Trace.of([Event(Kind.OP, "aten::mm", lane, 0, 700)]), tmp_path / "run.json")
    yield lambda *args: CliRunner().invoke(commands, args, standalone_mode=False)
    for name in ("count", "span"):
        monkeypatch.delitem(__import__("sys").modules, f"syncscope.exporters.{name}", raising=False)
        if hasattr(exporters, name):
            delattr(exporters, name)


def test_one_for_findings_is_offered_by_lint_and_by_report(run, tmp_path):
    assert run("lint", "--isolated", "--no-cache", "--format", "count", "train.py").output == "1 findings\n"
    assert run("report", "--format", "count", "run.json").stdout == "0 findings\n"
    run("lint", "--isolated", "--no-cache", "-o", "found.count", "train.py")
    assert (tmp_path / "found.count").read_text() == "1 findings\n"


def test_one_for_traces_is_offered_by_report_alone(run, tmp_path):
    assert run("report", "--format", "span", "run.json").output == "700 ns\n"
    run("report", "run.json", "-o", "out.span.count")  # the longer suffix is meant
    assert (tmp_path / "out.span.count").read_text() == "700 ns\n"
    refused = run("lint", "--format", "span", "train.py").exception
    assert refused.message == "the format 'span' shows a trace, and here are findings"
    assert "count" in refused.hint
    assert "span" not in refused.hint
