"""What CIs are given runs: the scripts of the action and of the template, on a project with one wait, and with none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WAITS = "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.exp()[x > 0]\n"


@pytest.fixture
def machine(tmp_path):
    """A runner: `python -m pip` does nothing, `syncscope` is ours."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, does in (
        ("python", 'test "$1 $2" = "-m pip"'),
        ("syncscope", f'exec {sys.executable} -P -m syncscope "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "output").touch()
    own = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)

    def run(script, source, **variables):
        (project / "src" / "train.py").write_text(source)
        env = {**os.environ, "PYTHONPATH": str(ROOT), **own, **variables}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=project, env=env, capture_output=True, text=True, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    run.project, run.output = project, tmp_path / "output"
    return run


def step() -> str:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    found = steps[-1]
    assert "${{" not in found["run"], "text of a pull request would be part of the script"
    return str(found["run"])


def test_the_action_annotates_a_line_that_waits_and_fails(machine):
    code, said = machine(step(), WAITS, PATHS="src", BASELINE="", ARGUMENTS="", SOURCE="x")
    assert code == 1, said
    assert "::warning file=src/train.py,line=5" in said
    assert machine.output.read_text() == "findings=1\n"


def test_the_action_passes_what_is_known_and_takes_options(machine):
    code, said = machine("syncscope lint --write-baseline known.json src", WAITS)
    assert code == 0, said
    code, said = machine(
        step(), WAITS, PATHS="src", BASELINE="known.json", ARGUMENTS="--min-confidence high", SOURCE="x"
    )
    assert (code, machine.output.read_text()) == (0, "findings=0\n"), said


def test_the_template_for_gitlab_writes_its_report(machine):
    job = yaml.safe_load((ROOT / "templates" / "gitlab.yml").read_text())["syncs"]
    code, said = machine("\n".join(job["script"]), WAITS, **job["variables"])
    assert code == 1, said
    report = json.loads((machine.project / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [(found["location"]["path"], found["location"]["positions"]["begin"]["line"]) for found in report] == [
        ("src/train.py", 5)
    ]


def test_the_hooks_for_pre_commit_are_commands_of_ours(machine):
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        code, said = machine(f"{hook['entry']} src/train.py", WAITS)
        assert code == 1, said
