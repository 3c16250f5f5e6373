"""pyopencl's database of kernel calls is one file for all programs of a user: what is wrong with it stops none of them."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pyopencl as cl
import pytest
from pyopencl import invoker
from pytools.persistent_dict import WriteOncePersistentDict
from warm import Python

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope import files
from syncscope.kernels import callers
from syncscope.kernels.device import context

USE = "import torch, syncscope.kernels; print((torch.ones(3, device='ocl') * 2.5).tolist())"
DAMAGED = b"SQLite format 3\0" + b"\xff" * 4096


def used(forked: Python, caches: Path) -> "subprocess.CompletedProcess[str]":
    # All other caches stay where they are: to build and try the device anew is not what is asked here.
    pocl = os.environ.get("POCL_CACHE_DIR") or str(Path.home() / ".cache" / "pocl" / "kcache")
    kept = {"POCL_CACHE_DIR": pocl, files.CACHE: str(files.cache_folder(""))}
    here = {**os.environ, **kept, "XDG_CACHE_HOME": str(caches)}
    return forked("-c", USE, env=here)


def test_a_damaged_database_is_named_and_the_device_works(tmp_path, forked):
    make = "import pyopencl.invoker"
    subprocess.run([sys.executable, "-c", make], check=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    (file,) = (tmp_path / "pytools").glob("*invoker*")
    file.write_bytes(DAMAGED)
    done = used(forked, tmp_path)
    assert done.stdout == "[2.5, 2.5, 2.5]\n"
    assert "pyopencl's cache of kernel calls is not used: file is not a database" in done.stderr
    assert done.stderr.count("not used") == 1
    assert f"delete it where no other program runs: rm '{file}'" in done.stderr


@pytest.mark.slow  # the same way round; a start of torch and `ocl`
def test_a_folder_that_cannot_be_made(tmp_path, forked):
    (tmp_path / "pytools").write_text("no folder")
    done = used(forked, tmp_path)
    assert done.stdout == "[2.5, 2.5, 2.5]\n"
    assert "pyopencl's cache of kernel calls is not used" in done.stderr


@pytest.fixture
def database(monkeypatch, tmp_path):
    """One that this process has opened, and that pyopencl asks from now on."""
    found = WriteOncePersistentDict("calls", container_dir=str(tmp_path), in_mem_cache_size=0, safe_sync=False)
    monkeypatch.setattr(invoker, "invoker_cache", found)
    callers.keep()
    return found


def call(name: str) -> None:
    kernel = getattr(cl.Program(context, f"kernel void {name}(int a) {{}}").build(), name)
    kernel.set_scalar_arg_dtypes(["int32"])
    kernel.set_args(3)


def test_it_is_damaged_while_a_program_runs(database):
    call("one")
    assert len(database)  # it is asked at all
    Path(database.filename).write_bytes(DAMAGED)
    with pytest.warns(UserWarning, match="not used"):
        call("two")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        warnings.simplefilter("ignore", cl.CompilerWarning)  # what a driver has to say of a kernel
        call("three")
        call("two")
