"""The public door: the same names for a program and for its type checker."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm import Python

import syncscope
from syncscope.cli.run import INSIDE


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


def test_run_on_a_device_whose_extra_is_missing(tmp_path: Path, forked: Python) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text("import torch; torch.zeros(3, device='cuda')")
    absent = "import sys; sys.modules['pyopencl'] = None; from syncscope.cli import main; main()"
    inside = os.environ | {INSIDE: str(tmp_path)}  # the process in which `syncscope run` has the program run
    done = forked("-c", absent, "run", "--device", "ocl", "train.py", env=inside, folder=tmp_path, ours=True)
    assert done.returncode == 2
    assert 'error: the device ocl needs pyopencl\n hint: pip install "syncscope[opencl]"' in done.stderr
    assert "Traceback" not in done.stderr
