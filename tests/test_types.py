"""What mypy says: nothing of what is ours, and of a program that uses it which names there are."""

import subprocess
import sys
from pathlib import Path

import pytest

import syncscope

ROOT = Path(syncscope.__file__).parents[1]
pytestmark = pytest.mark.xdist_group(
    "types"
)  # early, and one after the other: the second finds what the first has kept

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


def mypy(*arguments: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("mypy")
    return subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, cwd=ROOT)


def test_it_finds_nothing_in_the_package_and_the_benchmarks() -> None:
    """Here and not before the tests: it needs one processor alone, for as long as a tenth of them."""
    done = mypy()
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_type_checker_knows_the_names_and_refuses_others(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = mypy("--config-file", "pyproject.toml", str(tmp_path / "program.py"))
    said = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if "program.py:" in line]
    assert said == [
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
    ], done.stdout + done.stderr
