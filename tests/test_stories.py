"""What the page of stories shows is what is printed."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope.cli import commands

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stories.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def block(language: str, beginning: str) -> str:
    return next(text for kind, text in BLOCKS if kind == language and text.startswith(beginning))


def shown(command: str) -> str:
    """What stands below a command on the page."""
    return block("console", f"$ {command}").partition("\n")[2].strip()


def printed(*args: str) -> str:
    return CliRunner().invoke(commands, [*args, "--no-cache"], catch_exceptions=False).stdout


def test_the_loss_that_waits(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = printed("lint", "--format", "concise", "samples/segmentation.py")
    assert said.strip() == shown("syncscope lint --format")
    changed = printed("lint", "--diff", "samples/segmentation.py").splitlines()
    assert set(block("diff", "-    keep").splitlines()) <= set(changed)


def test_the_hang_in_a_compare_and_swap_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("kernels.cl").write_text(block("c", "void add"))
    said = printed("lint", "--select", "float-compare-and-swap", "kernels.cl")
    assert said.strip() == shown("syncscope lint --select")


def test_the_comprehension_and_its_gradient(capsys):
    pytest.importorskip("pyopencl")
    exec(compile(block("python", "import torch"), "stories.md", "exec"), {})
    assert capsys.readouterr().out == block("text", "def mm_grad")
