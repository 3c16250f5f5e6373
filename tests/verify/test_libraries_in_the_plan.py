"""Lines of installed packages that wait in the program's steps: their safe fixes are tried with its own, in copies."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from verify.test_beforehand import verify, waits_at
from verify.test_in_turns import OPTIONS, TRAIN

from syncscope import kineto
from syncscope.cli.verify import command

pytest.importorskip("torch")
__all__ = ["TRAIN"]
LOGGED = """
import torch


def spread(x: torch.Tensor):
    worst = x.max()
    value = float(worst)
    return value, float(worst) * 2


def rounded(x: torch.Tensor):
    return [float(one) for one in x]
"""
LOGGING = TRAIN.replace("import slow_device", "import logged\nimport slow_device").replace(
    "optimizer.step()",
    "optimizer.step()\n        logged.spread(loss.detach())\n        logged.rounded(loss.detach().view(1))",
)


@pytest.mark.xdist_group("runs of a program")
@pytest.mark.usefixtures("imported_once")
def test_safe_fixes_of_lines_that_wait_in_libraries_are_tried_and_never_written(project: Path, library: Path) -> None:
    logged = library.parent / "logged.py"
    logged.write_text(LOGGED)
    (project / "train.py").write_text(LOGGING)
    options = [*OPTIONS, "--precision=30%", "--write", "train.py"]
    done = CliRunner().invoke(command, options, standalone_mode=False)
    assert done.exception is None, done.output
    found = json.loads(done.stdout)
    (of_library,) = (fix for fix in found["fixes"] if fix["path"].endswith("logged.py") and fix["safety"] == "safe")
    assert (of_library["line"], of_library["values"]) == (7, "equal")
    assert of_library["ratio"] or of_library["without_ratio"] or found["ratio"]
    assert all(
        not fix["kept"] for fix in found["fixes"] if fix["path"].endswith("logged.py") and fix["safety"] != "safe"
    )
    assert logged.read_text() == LOGGED
    if of_library["kept"]:
        assert "logged.py is a library's, and is not written to" in done.stderr


def test_a_safe_fix_of_a_recorded_line_of_a_library_is_worth_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    logged = tmp_path / "site-packages" / "logged.py"
    logged.parent.mkdir(exist_ok=True)
    logged.write_text(LOGGED)
    kineto.save(waits_at(logged, 8), tmp_path / "trace.json.gz")
    done = verify(monkeypatch, tmp_path, "--trace=trace.json.gz", "train.py")
    assert "nothing was run" not in done.stderr
    assert (tmp_path / "touched").exists()
