"""A real driver (PoCL), a vendor that does what it is told, and programs in processes of their own."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from old_pocl import name_cpu

from syncscope.model.trace import Kind, Trace
from syncscope.tracers.opencl import abi, compiled, dispatch

HERE = Path(__file__).parent
PACKAGE = Path(dispatch.__file__).parents[2]


def steps(trace: Trace) -> list[str]:
    """The names of the steps that were recorded."""
    return [event.name for event in trace if event.kind == Kind.STEP]


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a GPU in sight, torch.profiler is left out: what is recorded here is drawn, or OpenCL's."""
    monkeypatch.setattr("syncscope.tracers.sources.torch_profiler._available", lambda: False)


@pytest.fixture
def unlinted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report lints the files whose lines it has: for a line of a test it goes through all of this repository."""
    from syncscope.api import linted, reports

    monkeypatch.setattr(reports, "linted", lambda paths, libraries=(): linted.linted([], libraries))


@pytest.fixture(scope="session")
def hook() -> ctypes.CDLL:
    library = compiled.library()
    if library is None:
        pytest.skip(f"no compiled hook: {compiled.why_not()}")
    return library


@pytest.fixture(scope="session")
def pocl(hook: ctypes.CDLL) -> Any:
    """A context of a real driver, and a program for it: `slow` spins, `twice` doubles."""
    cl = pytest.importorskip("pyopencl")
    try:
        device = cl.get_platforms()[0].get_devices()[0]
    except cl.Error as error:
        pytest.skip(f"no OpenCL driver: {error}")
    name_cpu(device)
    context = cl.Context([device])
    source = """
    __kernel void twice(__global float *a) { a[get_global_id(0)] *= 2; }
    __kernel void slow(__global float *a, int n) { float x = a[0]; for (int i = 0; i < n; i++) x = x * 0.999f + 1; a[0] = x; }
    """
    program = cl.Program(context, source).build()
    return SimpleNamespace(cl=cl, context=context, device=device, program=program, twice=cl.Kernel(program, "twice"))


@pytest.fixture(scope="session")
def fake_library(hook: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("fake") / "fake.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-w", str(HERE / "fake_icd.c"), "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    for name in ("setup", "platform_handle", "queue_handle", "make_queue"):
        getattr(library, name).restype = ctypes.c_void_p
    library.make_queue.argtypes = [ctypes.c_uint64]
    library.enqueue.restype = library.blocking_read.restype = ctypes.c_double
    return library


@pytest.fixture
def fake(fake_library: ctypes.CDLL) -> Iterator[Any]:
    """The fake vendor, fresh; `set(name, value)` changes how it behaves."""

    def change(name: str, value: int) -> None:
        ctypes.c_int.in_dll(fake_library, name).value = value

    def value(name: str) -> int:
        return ctypes.c_int.in_dll(fake_library, name).value

    fake_library.setup(0)
    for name in ("mood", "timer_works", "refuse_profiling"):
        change(name, 0)
    yield SimpleNamespace(
        library=fake_library,
        table=ctypes.addressof((ctypes.c_void_p * abi.SLOTS).in_dll(fake_library, "table")),
        change=change,
        value=value,
        enqueue=fake_library.enqueue,
        read=fake_library.blocking_read,
    )
    change("mood", 0)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs a program in a process of its own, in the test's folder; recordings go there as well."""

    def run(
        code: str, *arguments: str, before: tuple[str, ...] = (), **options: Any
    ) -> "subprocess.CompletedProcess[str]":
        script = tmp_path / "program.py"
        script.write_text(code)
        environment = {**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "200", "PYTHONPATH": str(PACKAGE.parent)}
        command = [sys.executable, *before, str(script), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300, check=False, **options
        )

    return run
