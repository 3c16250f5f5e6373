"""A command line to talk to, with a cache of its own, and files to lint."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.errors import UserError
from syncscope.linter import config, engine, rulesets


@dataclass
class Ran:
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[tuple[str, int, str]]:
        """File, line and rule of every finding in the text output."""
        found = re.findall(r"^(\S[^\n]*?):(\d+):\d+: (?:error|warning|note): .* \[([\w-]+)\]$", self.out, re.MULTILINE)
        return [(path, int(line), rule) for path, line, rule in found]


@dataclass
class Door:
    """`syncscope` in one folder: `door("lint", "x.py")` runs it, `door.write("x.py", code)` writes there."""

    folder: Path

    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Ran:
        for forget in (config.read, engine.project, rulesets.ruleset, rulesets.claimants):
            forget.cache_clear()
        result = CliRunner().invoke(commands, list(args), input=stdin, standalone_mode=False)
        match result.exception:  # as main() does
            case None:
                return Ran(result.return_value or 0, result.stdout, result.stderr)
            case UserError() | ClickException() as error:
                return Ran(2, result.stdout, f"{result.stderr}error: {error}\n")
        raise result.exception

    def write(self, name: str, code: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(code).encode() if isinstance(code, str) else code)
        return path


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Door:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNCSCOPE_CONFIG_DIR", str(tmp_path / "settings"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Door(folder)


@pytest.fixture
def git(door, monkeypatch):
    """Git in the folder of `door`, on the branch main, with its own settings alone."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")

    def git(*said: str, within=door.folder) -> str:
        return subprocess.run(["git", *said], cwd=within, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main")

    def commit(**files: str) -> str:
        for name, code in files.items():
            door.write(name.replace("__", "/") + ".py", code)
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "a commit")
        return git("rev-parse", "HEAD")

    git.commit = commit
    return git


READS = """\
import torch


def train(model, loader, optimizer):
    for images, labels in loader:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
"""A training loop with one host read, on line 11."""

MASKS = """\
import torch


def loss(scores):
    target = torch.zeros(8, 8, device="cuda")
    background = torch.nonzero(target == 9, as_tuple=True)
    target[background] = -1
    return target
"""
"""A loss with one safe fix: lines 6 and 7 become a masked_fill_."""

LOOP = """\
void add(volatile __global float *sum, float value) {
    float old = *sum, assumed;
    do {
        assumed = old;
        old = as_float(atomic_cmpxchg((volatile __global int *)sum, as_int(assumed), as_int(assumed + value)));
    } while (old != assumed);
}
"""
"""OpenCL C with one finding, in line 5: a loop that never ends where a NaN is met."""
