"""`syncscope verify` with versions that take turns in one process, through the command line: what is known beforehand is found,
and what cannot run so is tried as before.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from verify.slow_device import DEVICE
from verify.test_clearing import running_in

from syncscope.cli.verify import command
from syncscope.verify.compared import Compared
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program
from syncscope.verify.results import Verification
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.timing import Ratio, decides, turns_to_come
from syncscope.verify.two import OTHER

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.xdist_group("runs of a program"),
    pytest.mark.usefixtures("project", "library", "imported_once"),
]
TRAIN = """
import time
import torch
import slow_device

device = torch.device("cuda")
torch.manual_seed(0)
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loader = [torch.randn(5, 4) for _ in range(400)]


def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        time.sleep(0.004)
    return total


print(train(model, loader, optimizer))
open("checkpoint.pt", "w").write("of today")
"""
OPTIONS = ("--device=cpu", "--budget=60m", "--steps=12", "--format=json", "--quiet")  # no machine is too slow for that
HALF = 0.48  # at least: of a step in which the program takes as long as the device, by a clock that is drawn


def verified(*options: str) -> tuple[int, dict[str, Any]]:
    program = () if options[-1:] == ("after.py",) else ("train.py",)
    own = [option for option in OPTIONS if not (option == "--device=cpu" and "--" in options)]
    given = [option for option in options if option != "--"]
    done = CliRunner().invoke(command, [*own, *given, *program], standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value, json.loads(done.stdout)


def test_a_gain_is_found_in_one_process_and_the_program_is_as_before(project: Path) -> None:
    code, found = verified()
    assert (code, found["way"], found["why_processes"], found["values"]) == (0, "one process", None, "equal")
    assert HALF < found["low"] <= found["ratio"] <= found["high"] < 1 - HALF
    assert found["runs"] == 3  # as written, rewritten, and the one of turns
    assert (project / "train.py").read_text() == TRAIN
    assert (project / "checkpoint.pt").read_text() == "of yesterday"


def test_what_gives_nothing_is_no_gain(library: Path) -> None:
    library.write_text(DEVICE.replace("time.sleep(0.004)", "pass"))
    code, found = verified()
    assert (code, found["way"], found["decided"], found["patch"]) == (1, "one process", True, "")
    assert 0.98 < found["low"] <= found["ratio"] <= found["high"] < 1.02


def test_a_program_of_few_steps_is_tried_in_processes_and_the_result_says_why(project: Path) -> None:
    (project / "train.py").write_text(TRAIN.replace("range(400)", "range(9)"))
    _, found = verified("--steps=8", "--precision=30%")
    assert found["way"] == "processes"
    assert "too few steps: a turn takes 23 at least, and some 131 where" in found["why_processes"]
    assert HALF < found["ratio"] < 1 - HALF


@pytest.mark.slow  # as the one above, told by another process
def test_of_a_program_that_has_ended_it_is_known_how_many_steps_are_missing(project: Path) -> None:
    (project / "train.py").write_text(TRAIN.replace("range(400)", "range(11)"))
    _, found = verified("--precision=30%")
    assert found["way"] == "processes"
    assert "makes 11 steps, too few: a turn takes 23 at least" in found["why_processes"]
    assert not found["spent"].get("warming up"), "no process was begun for turns that it cannot hold"


@pytest.mark.slow
def test_each_version_has_a_process_where_that_is_asked_for() -> None:
    _, found = verified("--apart", "--precision=30%")
    assert found["way"] != "one process"
    assert HALF < found["ratio"] < 1 - HALF


def test_two_versions_of_ones_own_take_turns(project: Path) -> None:
    (project / "after.py").write_text(TRAIN.replace("total += loss.item()", "total += loss.detach().double()"))
    code, found = verified("train.py", "after.py")
    assert (code, found["way"], found["values"]) == (0, "one process", "equal")
    assert HALF < found["low"] <= found["high"] < 1 - HALF


FUNCTION = TRAIN[TRAIN.index("def train(") : TRAIN.index("\n\n\nprint(")]
NAMES = "(model, loader, optimizer)"
CLOSED = TRAIN.replace(
    FUNCTION,
    f"def made{NAMES}:\n" + textwrap.indent(FUNCTION.replace(NAMES, "()"), "    ") + "\n    return train",
).replace(f"train{NAMES})", f"made{NAMES}())")
SCRIPTED = """
@torch.jit.script
def scaled(x: torch.Tensor):
    return x * 2
"""
LATER = """
def twice(x: torch.Tensor):
    return x * 2

scaled = torch.compile(twice, backend="eager")
"""


def test_a_closure_takes_turns(project: Path) -> None:
    (project / "train.py").write_text(CLOSED)
    code, found = verified()
    assert (code, found["way"], found["values"]) == (0, "one process", "equal")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (SCRIPTED, "train.py: scaled is compiled by what decorates it"),
        pytest.param(
            LATER, "torch.compile has compiled some of the program", marks=pytest.mark.slow
        ),  # 12 s of compilers
    ],
)
def test_what_others_compile_has_processes_and_the_result_says_so(project: Path, function: str, why: str) -> None:
    before = TRAIN.replace("def train", f"{function}\n\ndef train").replace('device("cuda")', 'device("cpu")')
    before = before.replace("model(x).square()", "scaled(model(x)).square()")
    (project / "train.py").write_text(before)
    (project / "after.py").write_text(before.replace("x * 2", "x + x"))
    _, found = verified("--", "--precision=30%", "train.py", "after.py")  # in a dry run nothing is compiled
    assert (found["way"], found["values"]) == ("processes", "equal")
    assert found["why_processes"] == why


STAYS = """
        time.sleep(0.004)
        if (count := count + 1) > 40:
            open("checkpoint.pt", "w").write("now")
            threading.Event().wait()
"""
STAYS = TRAIN.replace("        time.sleep(0.004)", STAYS.strip("\n")).replace("total = 0.0", "total, count = 0.0, 0")
STAYS = STAYS.replace("import time", "import threading, time")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.slow  # the same process clears up as in `test_clearing.py`, and the same is said as in `test_verify_command.py`
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_whoever_ends_it_while_versions_take_turns_finds_all_as_it_was(project: Path, ended_by: int) -> None:
    """The turns are under way for as long as that takes: their program comes to no further step."""
    (project / "train.py").write_text(STAYS)
    command = [sys.executable, "-m", "syncscope", "verify", "--device=cpu", "--steps=12", "train.py"]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end, seen = time.monotonic() + 400, Path("none")
    while time.monotonic() < end and not turns_of(seen):
        time.sleep(0.2)
        seen = next((place for place in temporary() if turns_of(place)), Path("none"))
    assert turns_of(seen), "versions never took turns"
    while time.monotonic() < end and (project / "checkpoint.pt").read_text() != "now":
        time.sleep(0.05)
    assert (project / "checkpoint.pt").read_text() == "now"
    process.send_signal(ended_by)
    out, err = process.communicate(timeout=180)
    assert process.returncode == (130 if ended_by == signal.SIGINT else -ended_by), err
    while time.monotonic() < end and (running_in(project) or seen.exists()):  # after SIGKILL another process clears up
        time.sleep(0.2)
    assert not running_in(project)
    assert not seen.exists()
    assert (project / "checkpoint.pt").read_text() == "of yesterday"
    assert sorted(os.listdir(project)) == ["checkpoint.pt", "train.py"]
    if ended_by == signal.SIGINT:
        assert "Interrupted: nothing is decided" in out


def temporary() -> list[Path]:
    return [*Path(tempfile.gettempdir()).glob("syncscope-verify-*")]


def turns_of(folder: Path) -> list[Path]:
    """The versions that take turns in a run below this folder."""
    return [*folder.glob("*/*/version1")]


ROLLOUTS = """
def rollouts():
    while True:
        seen = []
        for x in loader[:4]:
            seen.append(float(model(x).sum()))
            yield x
        sum(seen)


"""


def test_what_is_begun_anew_once_in_some_steps_takes_turns_too(project: Path) -> None:
    """A rollout, and the four steps that learn from it. No list holds numbers of one version and tensors of the other."""
    before = TRAIN.replace("def train(", f"{ROLLOUTS.strip()}\n\n\ndef train(")
    before = before.replace("for x in loader:", "for x in rollouts():").replace("loss.item()", "1")
    (project / "train.py").write_text(before)
    (project / "after.py").write_text(
        before.replace("float(model(loader[0]).sum())", "model(loader[0]).sum().detach()")
    )
    _, found = verified("--precision=30%", "train.py", "after.py")
    assert (found["way"], found["why_processes"]) == ("one process", None)
    assert found["ratio"]


FILLED = """
def train(model, loader, optimizer):
    seen = []
    for epoch in range(80):
        losses = []
        for x in loader[:5]:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seen.append(sum(losses) / len(losses))
    return seen


"""


def test_a_list_that_is_filled_in_steps_and_finished_behind_them_takes_turns(project: Path) -> None:
    head, _, rest = TRAIN.partition("def train(")
    before = head + FILLED.strip() + "\n\n\nprint(" + rest.partition("\nprint(")[2]
    (project / "train.py").write_text(before)
    later = before.replace("losses.append(loss.item())", "losses.append(loss.detach())")
    stacked = "        losses = torch.stack(losses).tolist()\n        seen.append("
    (project / "after.py").write_text(later.replace("        seen.append(", stacked))
    _, found = verified("--precision=30%", "train.py", "after.py")
    assert (found["way"], found["why_processes"]) == ("one process", None)
    assert found["ratio"]


@pytest.mark.parametrize(
    "wrong",
    [pytest.param("total += (loss * 1.5).item()", marks=pytest.mark.slow), "model.weight.data += 1e-6"],
)
def test_another_version_that_computes_something_else_is_told(project: Path, wrong: str) -> None:
    (project / "after.py").write_text(TRAIN.replace("total += loss.item()", wrong))
    code, found = verified("--precision=30%", "train.py", "after.py")
    assert (code, found["values"]) == (1, "changed")
    assert (found["ratio"], found["way"]) == (None, None)  # no turns for what is another program


MADE = """
        shift = torch.zeros(3).to(device)
        rows = x.shape[0]
        scale = torch.ones(rows, 1).to(device)
        loss = (model(x) * scale + shift)"""
SEVERAL = TRAIN.replace("\n        loss = model(x)", MADE)


LOADER = "loader = torch.utils.data.DataLoader([torch.randn(5, 4) for _ in range(400)], batch_size=None)"


@pytest.mark.parametrize(
    ("counts", "told"),
    [pytest.param("0", None, marks=pytest.mark.slow), ("next(steps)", "the same steps as written twice differ by ")],
)
def test_where_one_fix_changes_values_the_others_are_compared_in_one_process_if_that_can_be(
    project: Path, counts: str, told: str | None
) -> None:
    """One of the three is wrong, so that no run has all of them: see `slow_device`."""
    counted = SEVERAL.replace("model(x)", f"model(x + {counts})").replace("import time", "import time, itertools")
    (project / "train.py").write_text(counted.replace("total = 0.0", "total, steps = 0.0, itertools.count()"))
    code, found = verified("--precision=30%")
    assert sorted(fix["values"] for fix in found["fixes"]) == ["changed", "equal", "equal"]
    assert code == 1
    why = found["why_compared_apart"]
    assert why is None if told is None else why.startswith(told)


def test_fewer_of_the_same_steps_are_compared_where_these_take_long(project: Path) -> None:
    """Fifteen parts in a hundred of what is left hold the same twenty steps three times, or ten."""
    path = project / "train.py"
    for seconds, steps in ((1, 18), (20, 8)):
        path.write_text(TRAIN.replace("sleep(0.004)", f"sleep({seconds})"))
        found = Verification("train.py")
        with Processes(time.monotonic() + 3600, lambda line: None) as processes:
            runs = Runs(Program(str(path), device="cpu"), Settings(3600, steps=12), processes, lambda what: None, found)
            runs.in_one, runs.other = True, Program(str(path), device="cpu")
            compared = Compared(runs)
            assert compared.is_equal_beside(OTHER), found.why_values
            assert compared.alongside[OTHER][0].steps == steps


def test_what_runs_once_is_tried_in_processes_and_the_result_names_it(project: Path) -> None:
    (project / "after.py").write_text(TRAIN.replace("range(400)", "range(2 * 200)"))
    _, found = verified("--precision=30%", "train.py", "after.py")
    assert found["way"] == "processes"
    assert found["why_processes"] == "train.py: line 10 is in the module, which runs once"


def test_a_fix_that_changes_what_runs_once_leaves_the_others_in_one_process(project: Path) -> None:
    """The copy that is not waited for pins what the loader gives, where the loader is made."""
    pinned = TRAIN.replace("loader = [torch.randn(5, 4) for _ in range(400)]", LOADER)
    (project / "train.py").write_text(pinned.replace("loss = model(x)", "loss = model(x.to(device))"))
    _, found = verified("--precision=30%")
    once, *others = sorted(found["fixes"], key=lambda fix: fix["rule"])
    assert once["rule"] == "blocking-upload"
    assert once["why"].startswith("train.py: line 10 is in the module, which runs once: --apart tries it")
    assert all(fix["ratio"] for fix in others)
    assert others
    assert found["way"] == "one process"


@pytest.mark.parametrize(
    ("called", "why"),
    [("main()", "runs once"), ("m = main\nm()", "is not begun anew in each step")],
)
@pytest.mark.slow  # a module's head runs once, too, and that is said of it
def test_so_it_does_in_the_head_of_a_function_around_the_loop(project: Path, called: str, why: str) -> None:
    head, _, rest = TRAIN.partition("torch.manual_seed(0)")
    body = rest.replace("loader = [torch.randn(5, 4) for _ in range(400)]", LOADER.replace("400", "9000"))
    body = body.replace("loss = model(x)", "loss = model(x.to(device))").replace("\n\n", "\n").partition("def train(")
    loop = body[2].partition("\n")[2].partition("    return total")[0]
    main = textwrap.indent(body[0], "    ") + loop
    (project / "train.py").write_text(f"{head}\n\ndef main():{main}\n\n{called}\n")
    _, found = verified("--precision=30%")
    once, *others = sorted(found["fixes"], key=lambda fix: fix["rule"])
    assert once["rule"] == "blocking-upload"
    assert re.match(rf"main\(\) \(line \d+\) {why}: --apart tries it", once["why"])
    assert all(fix["ratio"] for fix in others)
    assert others
    assert (found["way"], found["values"]) == ("one process", "equal")


def test_what_is_open_is_told_with_the_time_that_it_will_take() -> None:
    near, far = Ratio(0.95, 0.92, 0.98, 10), Ratio(0.99, 0.85, 1.13, 10)
    assert turns_to_come(near) == 0
    assert turns_to_come(far) > turns_to_come(Ratio(0.9, 0.79, 1.01, 10)) > 0
    assert turns_to_come(far, 0.68) < turns_to_come(far)
    assert turns_to_come(None) == turns_to_come(Ratio(1.0, 0.0, float("inf"), 2)) == float("inf")
    assert decides(near)
    assert not decides(far)
    assert decides(Ratio(1.0, 0.985, 1.015, 10))
