"""What mypy says: nothing of what is ours, and of a program that uses it which names there are."""

import subprocess
import sys
from pathlib import Path

import pytest

import syncscope

ROOT = Path(syncscope.__file__).parents[1]
pytestmark = pytest.mark.xdist_group("types")  # early

PROGRAM = """
import syncscope

reveal_type(syncscope.lint("train.py"))
reveal_type(syncscope.report("run.json"))
with syncscope.trace("runs") as recording:
    recording.step()
    recording.stop_it()
reveal_type(recording.save("runs"))
reveal_type(recording.report(show=False))
syncscope.lint(12)
syncscope.nonsense


@syncscope.trace("runs")
def train(rate: float) -> int:
    with syncscope.watch() as watch:
        reveal_type(watch.count)
    return len(syncscope.lint())


train("fast")
for batch in syncscope.steps(["a", "b"]):
    reveal_type(batch)

from syncscope.kernels import comprehension

reveal_type(comprehension("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }"))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """What it says of the program, and else: both are asked in one process. Here and not before the tests, for it needs one
    processor alone, for as long as a tenth of them."""
    pytest.importorskip("mypy")
    program = tmp_path_factory.mktemp("types") / "program.py"
    program.write_text(PROGRAM)
    # Without a look for garbage, of which there is little: that takes a sixth of the time.
    code = "import gc; gc.disable(); gc.enable = int; from mypy.__main__ import console_entry; console_entry()"
    command = [sys.executable, "-c", code, "--no-error-summary", "syncscope", "benchmarks", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    lines = done.stdout.splitlines()
    of_program = [line.partition("program.py:")[2] for line in lines if "program.py:" in line]
    return of_program, "\n".join(line for line in lines if "program.py:" not in line) + done.stderr


def test_it_finds_nothing_in_the_package_and_the_benchmarks(said: tuple[list[str], str]) -> None:
    assert said[1] == ""


def test_a_type_checker_knows_the_names_and_refuses_others(said: tuple[list[str], str]) -> None:
    assert said[0] == [
        '4: note: Revealed type is "list[syncscope.model.finding.Finding]"',
        '5: note: Revealed type is "syncscope.model.report.Report"',
        '8: error: "Recording" has no attribute "stop_it"  [attr-defined]',
        '9: note: Revealed type is "list[pathlib.Path]"',
        '10: note: Revealed type is "syncscope.model.report.Report"',
        '11: error: Argument 1 to "lint" has incompatible type "int"; expected "str | Path"  [arg-type]',
        '12: error: Module has no attribute "nonsense"  [attr-defined]',
        '18: note: Revealed type is "int"',
        '22: error: Argument 1 to "train" has incompatible type "str"; expected "float"  [arg-type]',
        '24: note: Revealed type is "str"',
        '28: note: Revealed type is "syncscope.kernels.comprehensions.comprehension.Comprehension"',
    ]
