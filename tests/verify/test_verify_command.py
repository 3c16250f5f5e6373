"""`syncscope verify` on small programs of the CPU, through the command line.

A library makes some calls slow, as a device would, and one call wrong: what gains, what gives nothing and what breaks
its promise is known beforehand.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from click.testing import CliRunner
from verify.conftest import import_once
from verify.programs import OFFERS
from verify.slow_device import put_device

from syncscope.cli import commands
from syncscope.errors import UserError

pytest.importorskip("torch")

TRAIN = """
import sys, time
import torch
import slow_device

device = torch.device("cuda")
torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = [torch.randn(5, 4) for _ in range(14)]


def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        target = torch.zeros(3).to(device)
        optimizer.zero_grad()
        weight = torch.ones(5, 1).to(device)
        rows = x.shape[0]
        shift = torch.eye(4).to(device)
        loss = ((model(x @ shift) - target) * weight).square().sum() / rows / 3
        loss.backward()
        optimizer.step()
        total += loss.item()
        time.sleep(0.004)
    return total


print(train(model, loader, optimizer))
"""
DRAWN = """
import os, sys, threading, time, torch
import drawn_clock
with open(os.environ["RUNS"], "a") as file:
    file.write("run\\n")
torch.manual_seed(int.from_bytes(os.urandom(2), "big"))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(14):
    loss = model(torch.randn(5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.004)
    loss.item()
"""
TRAINED = """
model = torch.nn.Linear(4, 3).cuda()
train(model, [torch.randn(5, 4) for _ in range(14)], torch.optim.SGD(model.parameters(), 0.1))
"""


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of what runs in that folder."""
    libraries, kept = folder / "site-packages", f"{folder}-runs"  # so that its lines are not the program's
    libraries.mkdir(exist_ok=True)
    put_device(libraries)
    Path(kept).mkdir(exist_ok=True)  # a folder of caches: elsewhere what a run writes is taken back
    return {"PYTHONPATH": str(libraries), "RUNS": f"{kept}/runs", "TORCH_HOME": kept}


def verify(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """It as a process, as a user starts it."""
    command = [sys.executable, "-m", "syncscope", "verify", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, env=os.environ | surroundings(folder), **pipes)


def asked(patch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The same in this process: its exit code, what it prints and what it says beside."""
    patch.chdir(folder)
    for name, value in surroundings(folder).items():
        patch.setenv(name, value)
    done = CliRunner().invoke(commands, ["verify", *arguments], standalone_mode=False)
    if isinstance(done.exception, UserError):
        return 2, done.stdout, f"{done.stderr}error: {done.exception.message}\n hint: {done.exception.hint}\n"
    assert done.exception is None, done.output
    return done.return_value, done.stdout, done.stderr


ONE_WORKER = pytest.mark.xdist_group("runs of a program")  # the program is verified once, not once a worker


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Path, int, dict[str, Any]]:
    """The program with four fixes, verified: its folder, the exit code, what was printed as JSON."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "train.py").write_text(TRAIN)
    options = ("--device=cpu", "--budget=60m", "--precision=30%", "--steps=12", "--format=json", "-o", "fixes.patch")
    with pytest.MonkeyPatch.context() as patch:
        import_once(patch, request)
        code, out, _ = asked(patch, folder, *options, "train.py", "7")
    return folder, code, json.loads(out)


def of_line(found: dict[str, Any], text: str) -> dict[str, Any]:
    number = next(n for n, line in enumerate(TRAIN.splitlines(), 1) if text in line)
    (fix,) = (fix for fix in found["fixes"] if fix["line"] == number)
    return fix


@ONE_WORKER
def test_what_gains_stays_and_is_a_patch(tried: tuple[Path, int, dict[str, Any]]) -> None:
    folder, _, found = tried
    made, read = of_line(found, "zeros(3)"), of_line(found, ".item()")
    assert (made["kept"], made["safety"], made["rule"], made["values"]) == (True, "safe", "created-on-host", "equal")
    assert (read["kept"], read["safety"], read["values"]) == (True, "safe", "equal"), read
    for fix in (made, read):  # a third each of what the device takes and the program, by a clock that is drawn
        assert 0.64 < fix["low"] <= fix["ratio"] <= fix["high"] < 0.69
    assert 0.32 < found["ratio"] < 0.35
    assert found["values"] == "equal"
    assert found["reads_before"] > found["reads_after"]
    assert (folder / "train.py").read_text() == TRAIN
    if not shutil.which("git"):
        pytest.skip("no git")
    subprocess.run(["git", "apply", "fixes.patch"], cwd=folder, check=True)
    mended = (folder / "train.py").read_text()
    assert "torch.zeros(3, device=device)" in mended
    assert "torch.ones(5, 1).to(device)" in mended
    compile(mended, "train.py", "exec")


@ONE_WORKER
def test_a_safe_fix_that_changes_values_is_refused(tried: tuple[Path, int, dict[str, Any]]) -> None:
    _, code, found = tried
    wrong = of_line(found, "ones(5, 1)")
    assert (wrong["kept"], wrong["values"]) == (False, "changed")
    assert "said to be safe" in wrong["why"]
    assert code == 1


@ONE_WORKER
def test_what_gives_nothing_is_left_out(tried: tuple[Path, int, dict[str, Any]]) -> None:
    _, _, found = tried
    idle = of_line(found, "eye(4)")
    assert (idle["kept"], idle["values"]) == (False, "equal")
    assert idle["why"] == "it does not gain"


@ONE_WORKER
def test_the_json_has_what_is_promised(tried: tuple[Path, int, dict[str, Any]]) -> None:
    _, _, found = tried
    promised = "ratio low high values reads_before reads_after predicted_ratio fixes"
    assert promised.split() == [key for key in found if key in promised.split()]
    for fix in found["fixes"]:
        each = "path line rule safety kept ratio low high values why"
        assert each.split() == [key for key in fix if key in each.split()]
    assert found["predicted_ratio"] is None  # on a CPU there is nothing to replay


@ONE_WORKER
@pytest.mark.usefixtures("imported_once")
def test_a_program_that_fails_shows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(
        f"{OFFERS}import torch\nprint('so far', flush=True)\nraise ValueError('no data here')\n"
    )
    code, out, err = asked(monkeypatch, tmp_path, "--format=json", "-o", "fixes.patch", "train.py")
    assert code == 2
    found = json.loads(out)
    assert (found["error"], found["hint"]) == (
        "train.py cannot be run: ValueError: no data here", "it must run by itself before it can be verified"
    )  # fmt: skip
    assert not (tmp_path / "fixes.patch").exists()
    assert re.search(r"so far\nTraceback .*line \d+, in <module>.*\nValueError: no data here\n", err, re.DOTALL)
    assert "error: train.py cannot be run: ValueError: no data here\n" in err


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import torch", "error: train.py cannot be run: ModuleNotFoundError: No module named 'torch'"),
        (
            "try:\n    import torch\nexcept ImportError:\n    print('done')",
            "error: train.py made no steps\n hint: a step ends with optimizer.step(),",
        ),
    ],
)
def test_where_torch_is_missing_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    (tmp_path / "train.py").write_text(OFFERS + program)
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    code, _, err = asked(monkeypatch, tmp_path, "train.py")
    assert code == 2
    assert said in err
    assert "KeyError" not in err


@ONE_WORKER
@pytest.mark.usefixtures("imported_once")
def test_another_version_that_fails_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "before.py").write_text(DRAWN)
    (tmp_path / "after.py").write_text(DRAWN.replace("loss.item()", "raise ValueError('not yet')"))
    code, out, err = asked(monkeypatch, tmp_path, "--steps=12", "before.py", "after.py")
    assert code == 2
    assert re.search(
        r"Traceback .*ValueError: not yet\nerror: after.py cannot be run: ValueError: not yet\n", err, re.DOTALL
    )
    assert not out
    assert (
        "it works on the CPU, where no wait is for a device, so hardly a fix gains here: --device ocl gives it one"
        in err
    )


@ONE_WORKER
@pytest.mark.usefixtures("imported_once")
def test_another_version_that_fails_when_it_is_timed_cannot_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = "import os\nmark = os.environ['RUNS'] + '-after'\nif os.path.exists(mark):\n    raise OSError('taken')\n"
    (tmp_path / "before.py").write_text(DRAWN)
    (tmp_path / "after.py").write_text(f"{once}open(mark, 'w').close()\n{DRAWN}")
    code, out, err = asked(monkeypatch, tmp_path, "--steps=12", "before.py", "after.py")
    assert code == 2
    assert "error: after.py cannot be run: OSError: taken\n" in err
    assert not out


@ONE_WORKER
@pytest.mark.usefixtures("imported_once")
def test_a_program_that_runs_only_once_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = "import os\nif os.path.exists(os.environ['RUNS']):\n    raise OSError('the port is taken')\n"
    (tmp_path / "train.py").write_text(f"{once}open(os.environ['RUNS'], 'w').close()\nimport torch\n{OFFERS}{TRAINED}")
    code, _, err = asked(monkeypatch, tmp_path, "--steps=12", "--device=cpu", "train.py")
    assert code == 2
    assert "cannot be run: OSError: the port is taken\n hint: it ran once, and fails the second time" in err


def test_what_is_known_is_shown_when_it_is_interrupted(tmp_path: Path) -> None:
    """By then there are two turns of four runs each; three are the least that decides."""
    waits = "model =", "if open(file.name).read().count('run') > 12: threading.Event().wait()\nmodel ="
    for name in ("before", "after"):
        (tmp_path / f"{name}.py").write_text(DRAWN.replace(*waits))
    process = verify(tmp_path, "--apart", "--precision=0.001%", "--steps=12", "before.py", "after.py")
    runs, end = Path(f"{tmp_path}-runs/runs"), time.monotonic() + 400
    while time.monotonic() < end and (not runs.exists() or len(runs.read_text().split()) < 13):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 130, err
    assert re.search(r"Interrupted: nothing is decided. So far a step is [01]\.", out)
    assert "two runs as written differ by" in " ".join(out.split())  # the seeds are drawn
    assert re.search(r"values +within", out)
    assert not left_in(tmp_path)


@ONE_WORKER
@pytest.mark.usefixtures("imported_once")
def test_a_budget_that_is_too_short_says_what_it_went_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "after"):
        (tmp_path / f"{name}.py").write_text(DRAWN.replace("import drawn_clock", "").replace("0.004", "0.3"))
    two = ("--steps=12", "--unsafe-fixes", "before.py", "after.py")
    for seconds in (8, 16, 32):  # more of it where a machine is so busy that imports take it all
        _, out, err = asked(monkeypatch, tmp_path, f"--budget={seconds}s", *two)
        said = " ".join(out.split())
        if "had not ended a single step" not in said:
            break
    assert err.startswith("--unsafe-fixes: verify tries them in any case\n")
    forewarned = re.search(r"the first run took \d+ s, and \d+ s are left: .*\. --budget \dm may do; Ctrl-C ends", err)
    assert forewarned or "the first run had not" in said
    assert " s a first run that looks" in said
    assert re.search(
        r"spent before everything was tried: imports took \d+ s(, and the first| and a run \d+\.\d s, .* --budget \dm)",
        said,
    )


def left_in(folder: Path) -> list[str]:
    """Processes that still run there."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == folder:
                found.append(link.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no program to verify"),
        (("nowhere.py",), "nowhere.py: no such script"),
        ((".",), "hint: give a script, or a module: syncscope verify -m package.train"),
        (("notes.ipynb",), "hint: jupyter nbconvert --to script notes.ipynb"),
        (("--line", "train.py", "train.py"), "is no line; write train.py:95"),
        (("--budget", "0", "train.py"), "is no time; write 90s or 10m"),
        (("--line", "train.py:3", "train.py"), "train.py has 1 lines, and none is line 3"),
        (("--rule", "host-raed", "train.py"), "hint: did you mean 'host-read'?"),
        (("--budget", "soon", "train.py"), "is no time; write 90s or 10m"),
        (("--stale", "--write", "train.py"), "--stale makes no fixes"),
        (("--write", "--line", "site-packages/lib.py:1", "train.py"), "is a library's, and no library is written to"),
        (("-o", "what", "train.py"), "does not say what to write"),
    ],
)
def test_wrong_options_of_verify_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "site-packages").mkdir()
    for name in ("train.py", "notes.ipynb", "site-packages/lib.py"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(commands, ["verify", *arguments], standalone_mode=False).exception
    assert isinstance(error, UserError | ClickException)
    assert said in str(error)


def test_a_patch_of_files_elsewhere_is_for_the_folder_that_holds_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from syncscope.cli._verified import patch
    from syncscope.verify.results import Verification

    project = tmp_path / "repository" / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    here, beside = str(project / "train.py"), str(project.parent / "common.py")
    only_here = Verification("train.py", files={here: (b"a\n", b"b\n")})
    both = Verification("train.py", files=only_here.files | {beside: (b"c\n", b"d\n")})
    assert re.findall(r"^--- (.*)", patch(only_here), re.M) == ["a/train.py"]
    assert re.findall(r"^--- (.*)", patch(both), re.M) == ["a/project/train.py", "a/common.py"]
