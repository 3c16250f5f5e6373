"""What CIs are given runs: the scripts of the action and of the template, on a project with one wait, and with none."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import warm
import yaml
from cli.recorded import MS, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.linter.files import SUFFIXES
from syncscope.linter.source import C_SUFFIXES
from syncscope.model.trace import Kind, Trace

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("runs of a program")
WAITS = "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.exp()[x > 0]\n"


@pytest.fixture
def programs(tmp_path, request):
    """What a runner has: `python -m pip` does nothing, `syncscope` is ours, forked from a process that has imported it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, does in (
        ("python", 'test "$1 $2" = "-m pip"'),
        ("syncscope", f'exec {sys.executable} -P -m syncscope "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    if sys.platform != "linux" or not importlib.util.find_spec("torch"):
        yield programs
        return
    with warm.program(
        request.getfixturevalue("warm_process"), programs / "syncscope", "from syncscope.cli import main; main()"
    ):
        yield programs


@pytest.fixture
def machine(tmp_path, programs):
    """A runner."""
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
    code, said = machine(step(), WAITS, PATHS="src", SINCE="", BASELINE="", ARGUMENTS="", SOURCE="x")
    assert code == 1, said
    assert "::warning file=src/train.py,line=5" in said
    assert machine.output.read_text() == "findings=1\n"


def test_the_action_passes_what_is_known_and_takes_options(machine):
    code, said = machine("syncscope lint --write-baseline known.json src", WAITS)
    assert code == 0, said
    code, said = machine(
        step(), WAITS, PATHS="src", SINCE="", BASELINE="known.json", ARGUMENTS="--min-confidence high", SOURCE="x"
    )
    assert (code, machine.output.read_text()) == (0, "findings=0\n"), said


@pytest.fixture
def branch(machine, monkeypatch):
    """A branch in the machine's project whose base has one wait."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    commit = "git init -qb main; git add -A; git -c user.name=a -c user.email=a@b commit -qm a"
    code, told = machine(f"{commit}; git update-ref refs/remotes/origin/main @", WAITS)
    assert code == 0, told


@pytest.mark.usefixtures("branch")
def test_the_action_tells_what_a_branch_brings(machine):
    inputs = {"PATHS": "src", "SINCE": "origin/main", "BASELINE": "", "ARGUMENTS": "", "SOURCE": "x"}
    assert machine(step(), WAITS, **inputs)[0] == 0
    code, said = machine(step(), WAITS.replace("x > 0", "x > 1"), **inputs)
    assert code == 1, said
    assert machine.output.read_text().splitlines()[-1] == "findings=1"


@pytest.mark.usefixtures("branch")
def test_the_workflow_for_github_compares_with_the_base_of_the_pull_request(machine):
    job = yaml.safe_load(printed("github"))["jobs"]["lint"]
    assert next(step for step in job["steps"] if "checkout" in step.get("uses", ""))["with"] == {"fetch-depth": 0}
    script = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    said = job["env"]["SYNCSCOPE_ARGUMENTS"].replace("${{ github.base_ref }}", "main")
    variables = job["env"] | {"SYNCSCOPE_PATHS": "src", "SYNCSCOPE_ARGUMENTS": said}
    assert machine(script, WAITS, **variables)[0] == 0
    assert machine(script, WAITS.replace("x > 0", "x > 1"), **variables)[0] == 1


def printed(host: str) -> str:
    """What `syncscope ci` prints."""
    done = CliRunner().invoke(commands, ["ci", host], standalone_mode=False)
    assert done.return_value == 0, done.output
    return done.stdout


def test_the_job_for_gitlab_writes_its_report(machine):
    job = yaml.safe_load(printed("gitlab"))["syncs"]
    code, said = machine("\n".join(job["script"]), WAITS, **job["variables"])
    assert code == 1, said
    report = json.loads((machine.project / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [(found["location"]["path"], found["location"]["positions"]["begin"]["line"]) for found in report] == [
        ("src/train.py", 5)
    ]


def test_the_workflow_for_github_stops_a_new_sync(machine):
    assert machine("syncscope lint --write-baseline known.json src", "import torch\n")[0] == 0
    job = yaml.safe_load(printed("github"))["jobs"]["lint"]
    script = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    variables = job["env"] | {"SYNCSCOPE_PATHS": "src", "SYNCSCOPE_ARGUMENTS": "--baseline known.json"}
    assert "PyPI" in printed("github"), "by name it may be a stranger's"
    assert variables["SYNCSCOPE"].endswith(".whl")
    code, said = machine(script, "import torch\n", **variables)
    assert code == 0, said
    code, said = machine(script, WAITS, **variables)
    assert code == 1
    assert "::warning file=src/train.py,line=5" in said


def test_the_hooks_for_pre_commit_are_commands_of_ours(machine):
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        code, said = machine(f"{hook['entry']} src/train.py", WAITS)
        assert code == 1, said


def test_the_hooks_for_pre_commit_are_given_every_kind_of_file_that_is_linted():
    """It has types for Python and notebooks, and none for `.cl`: such files came to no hook."""
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for name in ("syncscope", "syncscope-fix"):
        assert hooks[name]["types_or"] == ["python", "jupyter"]
        assert "files" not in hooks[name], "pre-commit asks for both"
    assert "types_or" not in hooks["syncscope-opencl"]
    given = [ending for ending in SUFFIXES if re.search(hooks["syncscope-opencl"]["files"], f"src/scale{ending}")]
    assert given == [*C_SUFFIXES]
    assert {*SUFFIXES} - {*given} == {".py", ".pyw", ".ipynb"}


def test_the_hook_for_opencl_reads_a_kernel_that_waits_for_nobody(machine):
    (hook,) = [one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if "opencl" in one["id"]]
    kernel = machine.project / "src" / "sum.cl"
    kernel.write_text(
        "__kernel void sum(__global float *a, __local float *b) {\n  int i = get_local_id(0);\n"
        "  if (i < 8)\n    barrier(CLK_LOCAL_MEM_FENCE);\n  a[i] = b[i];\n}\n"
    )
    code, said = machine(f"{hook['entry']} src/sum.cl", "import torch\n")
    assert code == 1, said


def workflow(named: str) -> list[dict[str, object]]:
    """The steps of a workflow that docs/how-do-i.md shows."""
    blocks = re.findall(r"^```yaml\n(.+?)^```", (ROOT / "docs" / "how-do-i.md").read_text(), re.MULTILINE | re.DOTALL)
    found = next(yaml.safe_load(block) for block in blocks if f"workflows/{named}" in block)
    (job,) = found["jobs"].values()
    return [step for step in job["steps"] if "run" in step]


@pytest.mark.parametrize(("syncs", "ends"), [(3, 0), (4, 1)])
def test_the_workflow_that_records_a_step_stops_a_new_sync(machine, syncs, ends):
    install, record, summary, gate = workflow("step.yml")
    assert install["run"] == "pip install './syncscope-VERSION.whl[trace]'"
    program, *args = shlex.split(record["run"])
    assert program == "syncscope"
    run = commands.get_command(None, args[0])
    assert (
        run.make_context("run", args[1:]).params["output"] == "runs"
    )  # what it takes; that it records is tested elsewhere
    kept = recording("src/train.py", 5)
    waits = [event for event in kept if event.kind is not Kind.STEP]
    steps = [event for event in kept if event.kind is Kind.STEP]
    shrunk = [
        replace(event, start=event.start // 8 + 10 * MS * step_of(event) * 7 // 8 + part * 2 * MS, duration=event.duration // 8,
                correlation=event.correlation + 1000 * part)
        for part in range(syncs) for event in waits
    ]  # fmt: skip
    kineto.save(Trace.of([*steps, *shrunk]), machine.project / "runs" / "run.pt.trace.json.gz")
    code, said = machine(summary["run"], WAITS, GITHUB_STEP_SUMMARY="summary.md")
    assert code == 0, said
    assert f"| `src/train.py:5` | `item` | {syncs} |" in (machine.project / "summary.md").read_text()
    code, said = machine(gate["run"], WAITS)
    assert code == ends, said
    assert ("::error file=src/train.py,line=5" in said) == bool(ends)


@pytest.mark.parametrize(("slower", "ends"), [(1, 0), (2, 1)])
def test_the_jobs_that_hold_a_recording_against_main_stop_a_slower_step(machine, slower, ends):
    """On GitHub from the cache, on GitLab from the registry: main's recording first, then a merge request's."""
    project = machine.project
    curl = project.parent / "programs" / "curl"
    curl.write_text('#!/bin/sh\ncase "$4" in --upload-file) cp "$5" "$6" ;; *) cp "$6" "$5" ;; esac\n')
    curl.chmod(0o755)
    blocks = re.findall(r"^```yaml\n(.+?)^```", (ROOT / "docs" / "how-do-i.md").read_text(), re.MULTILINE | re.DOTALL)
    job = next(yaml.safe_load(block) for block in blocks if "# .gitlab-ci.yml" in block)["step"]
    _install, _record, report, last = job["script"]
    told = {"MAIN": str(project.parent / "main.json.gz"), "CI_DEFAULT_BRANCH": "main", "CI_JOB_TOKEN": "x"}
    kept = project / "runs" / "train" / "run.pt.trace.json.gz"  # as `run` writes it, in the folder of its program
    kineto.save(recording("src/train.py", 5), kept)
    assert machine(last, WAITS, CI_COMMIT_BRANCH="main", **told)[0] == 0
    longer = [replace(e, start=e.start * slower, duration=e.duration * slower) for e in recording("src/train.py", 5)]
    kineto.save(Trace.of(longer), kept)
    assert machine(report, WAITS)[0] == 0
    assert (project / job["artifacts"]["reports"]["codequality"]).exists()
    code, said = machine(last, WAITS, CI_COMMIT_BRANCH="mine", **told)
    assert code == ends, said
    _install, _record, aside, gate, summary = workflow("slower.yml")
    assert machine(str(aside["run"]), WAITS)[0] == 0
    (project / "runs").mkdir()
    kineto.save(recording("src/train.py", 5), project / "runs" / "train" / "run.pt.trace.json.gz")
    code, said = machine(gate["run"], WAITS)
    assert code == ends, said
    assert ("% allowed" in said) == bool(ends)
    assert ("::error title=syncscope (limit)::mine/train/run.pt.trace.json.gz" in said) == bool(ends), (
        "no line has more syncs"
    )
    assert machine(str(summary["run"]), WAITS, GITHUB_STEP_SUMMARY="summary.md")[0] == ends
    assert ("- **broken** `--max-slowdown 5%`" in (project / "summary.md").read_text()) == bool(ends)


def step_of(event) -> int:
    return int(event.start // (10 * MS))
