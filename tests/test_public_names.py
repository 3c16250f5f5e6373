"""The public door: the same names for a program and for its type checker."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import syncscope

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


def test_a_type_checker_knows_the_names_and_refuses_others(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    root = Path(syncscope.__file__).parents[1]
    command = (
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(root / "pyproject.toml"),
        str(tmp_path / "program.py"),
    )
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
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


def test_what_the_checker_sees_is_what_there_is() -> None:
    pytest.importorskip("torch")  # the guard's errors live beside what it installs
    tree = ast.parse(Path(syncscope.__file__).read_bytes())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("syncscope.")
        for alias in node.names
    }
    assert sorted(seen) == syncscope.__all__
    for name, home in seen.items():
        assert getattr(syncscope, name) is getattr(importlib.import_module(str(home)), name)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(syncscope, "nonsense")  # noqa: B009  a type checker refuses it


@pytest.mark.parametrize(
    ("missing", "code", "needed", "extra"),
    [
        (("torch", "pyopencl"), "syncscope.trace()", "neither torch nor pyopencl is installed", "syncscope[trace]"),
        (("pyopencl",), "import syncscope.kernels", "the device ocl needs pyopencl", "syncscope[opencl]"),
        (("torch",), "import syncscope.kernels", "the device ocl needs torch", "syncscope[trace]"),
    ],
)
def test_an_extra_that_is_missing_is_named(missing: tuple[str, ...], code: str, needed: str, extra: str) -> None:
    absent = f"import sys; sys.modules.update(dict.fromkeys({missing}))"
    done = subprocess.run([sys.executable, "-c", f"{absent}; import syncscope; {code}"], capture_output=True, text=True)
    assert done.returncode == 1
    assert f'{needed}\n hint: pip install "{extra}"' in done.stderr


def test_run_on_a_device_whose_extra_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pyopencl'] = None")
    (tmp_path / "train.py").write_text("import torch; torch.zeros(3, device='cuda')")
    command = [sys.executable, "-m", "syncscope", "run", "--device", "ocl", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert 'error: the device ocl needs pyopencl\n hint: pip install "syncscope[opencl]"' in done.stderr
    assert "Traceback" not in done.stderr
