"""A fix is as safe to `lint` as it is to who has measured; what lint leaves to people for what it gains is another matter."""

import json

import pytest
from cli.recorded import recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands

SOURCE = """\
import torch


def training_step(x: torch.Tensor, y: torch.Tensor):
    kept = x > 0
    return (x * 2)[kept] + (y * 3)[kept]
"""
SELECTS = 6


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What a command prints about one program and a recording of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "train.py").write_text(SOURCE)
    kineto.save(recording("train.py", SELECTS), tmp_path / "run.json.gz")
    return lambda *args: CliRunner().invoke(commands, args)


def test_one_fix_has_one_safety_in_every_command(said):
    lint, traced = "lint --all --format json train.py", "lint --trace run.json.gz --format json train.py"
    whole, measured = (json.loads(said(*command.split()).stdout)[0]["fix"] for command in (lint, traced))
    (line,) = json.loads(said("report", "run.json.gz", "--format", "json").stdout)["lines"]
    fixes = [whole, measured, line["fix"]]
    assert {(fix["title"], fix["safety"]) for fix in fixes} == {
        ("look for the true elements of kept once, not 2 times", "unsafe")
    }
    assert ["by_hand" in fix for fix in fixes] == [True, False, False]
    assert "(unsafe, by hand, --diff): look for" in said("lint", "--all", "train.py").stdout
    assert "(unsafe; --all --diff shows it): look for" in said("lint", "train.py").stdout


def test_lint_says_why_verify_tries_what_it_leaves_to_people(said):
    why = "left to people: 1, as a step likely gains little; `syncscope verify` measures what it can try"
    assert why in said("lint", "train.py").stderr
    assert why not in said("lint", "--trace", "run.json.gz", "train.py").stderr


def test_what_is_left_to_people_is_made_by_no_command(said, tmp_path):
    said("lint", "--all", "--fix", "--unsafe-fixes", "train.py")
    assert (tmp_path / "train.py").read_text() == SOURCE
