"""What more than one test file needs."""

import contextlib
import functools
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import warm
from effort import SEARCHING
from hypothesis import HealthCheck, settings

pytest_plugins = ["kernels.counts"]

gc.disable()  # until all is imported and collected: none of it is garbage

# Two workers with two threads each would wait for one another in every small operator.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where a shell starts it in the background, Ctrl-C is ignored, and so it is in all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that others use, too, is slow at random: how long an example takes is no reason to fail. And what passed for one
# must not fail for the next: the same examples each time, new ones where they are looked for (`make fuzz`).
settings.register_profile(
    "any machine",
    settings.default,
    deadline=None,
    derandomize=not SEARCHING,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# The suite is the same on every machine: what is recorded here is the OpenCL device's or the CPU's. The tests on_cuda look at a
# GPU, in processes of their own: one process of torch knows one accelerator, and here that is `ocl`.
WAS = "SYNCSCOPE_TESTS_CUDA_VISIBLE_DEVICES"  # xdist's workers inherit what the first process has changed
if WAS not in os.environ and "SYNCSCOPE_OCL_DEVICE" not in os.environ:  # whoever names a device may mean a GPU's OpenCL
    os.environ |= {WAS: os.environ.get("CUDA_VISIBLE_DEVICES", ""), "CUDA_VISIBLE_DEVICES": ""}

# PoCL builds kernels in a fifth of the time where it does not optimise them, those written for GPUs above all. `make fuzz` has
# them optimised; and as users have them, in processes of their own, the training and the self-test of kernels/, always.
BUILD = "PYOPENCL_BUILD_OPTIONS"
LINKER = str(Path(__file__).parent / "linker")
if not SEARCHING and "SYNCSCOPE_OCL_DEVICE" not in os.environ:
    os.environ.setdefault(BUILD, "-cl-opt-disable")
    if LINKER not in os.environ["PATH"]:
        os.environ["PATH"] = LINKER + os.pathsep + os.environ["PATH"]

# Whether its compiler computes rightly is asked once (`kernels/test_start_of_ocl.py`), and not by the first process of each
# folder of caches, nor by all workers at the same time.
os.environ.setdefault("SYNCSCOPE_OCL_SELFTEST", "off")

SHARED = Path(os.environ.get("SYNCSCOPE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each command offers what killed programs have recorded, which lies there: those of others are none of ours."""
    folder = str(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(autouse=True)
def same_torch_for_the_next() -> Iterator[None]:
    """Which tests share a process is the machine's choice: none meets what another has set. torch's compiler, for one, switches
    the checks of distributions off for all that follow."""
    before = _set_in_torch()
    yield
    distributions = sys.modules.get("torch.distributions")
    if distributions is not None:
        distributions.Distribution.set_default_validate_args(True)
    assert before is None or _set_in_torch() == before


def _set_in_torch() -> tuple[object, ...] | None:
    if "torch" not in sys.modules:
        return None
    import torch

    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.cuda.matmul.fp32_precision in ("none", "ieee"),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
        torch.get_num_threads(),
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded traces and labelled sources, too large for the repository; tests that need them skip without them."""
    if not SHARED.is_dir():
        pytest.skip(f"no material at {SHARED}; set SYNCSCOPE_SHARED to the folder that holds traces/ and lint-truth/")
    return SHARED


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment from before a GPU was hidden from this process."""
    here = dict(os.environ)
    was = here.pop(WAS, None)
    if was is None:
        return here
    del here["CUDA_VISIBLE_DEVICES"]
    return here | ({"CUDA_VISIBLE_DEVICES": was} if was else {})


Start = Callable[..., "subprocess.Popen[Any]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program as `subprocess.Popen` does. However the test ends, the program ends with it, and all that it has
    started: who only waits for one that hangs waits for ever."""

    def ended(process: "subprocess.Popen[Any]") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    with contextlib.ExitStack() as ends:

        def started(command: list[str], **options: Any) -> "subprocess.Popen[Any]":
            process = ends.enter_context(subprocess.Popen(command, start_new_session=True, **options))
            ends.callback(ended, process)
            return process

        yield started


@pytest.fixture(scope="session")
def warm_process() -> Iterator[socket.socket]:
    """One that has imported torch, for all that forks from it: these tests run in one worker."""
    from syncscope.verify import processes

    with warm.process({**os.environ, **processes.surroundings()}) as found:
        yield found


@pytest.fixture
def forked(request: pytest.FixtureRequest) -> warm.Python:
    """`python SCRIPT ...` or `python -c CODE` in a fork of a process that imported torch before: for programs in which it does
    not matter who did."""
    pytest.importorskip("torch")
    if sys.platform != "linux":
        return warm.in_a_process
    return functools.partial(warm.ran, request.getfixturevalue("warm_process"))


@pytest.hookimpl(tryfirst=True)  # xdist asks for groups then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file stays in one worker, which makes what its tests share once; and so do all that are forked from one process."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            forks = {"forked", "imported_once"} & set(getattr(item, "fixturenames", ()))
            group = "runs of a program" if forks else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        counts = Counter(_group(item) for item in items)
        items.sort(key=lambda item: (_is_short(item), -counts[_group(item)] if _is_short(item) else 0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Workers collect the same files at the same time, and each would rewrite the asserts of all that nobody has read before:
    so each imports others first, as the collection will."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[int(worker["workerid"][2:]) :: worker["workercount"]]:
        sys.path.insert(0, str(path.parent))
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection will say so
            importlib.import_module(path.stem)


def _group(item: pytest.Item) -> str:
    return str([mark.args[0] for mark in item.iter_markers("xdist_group")][-1])


def _is_short(item: pytest.Item) -> int:
    """What takes long comes first, so that no worker waits for another at the end: what runs in turns, what starts programs;
    and of others the files with the most tests."""
    named = [mark.args[0] for mark in item.iter_markers("xdist_group") if mark.args[0] != item.path.stem]
    return 0 if named else 2 - hasattr(getattr(item, "module", None), "subprocess")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What there is by now stays to the end: nobody need look through torch and eight thousand tests for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """So does what a file has left: `verify` looks through all objects of a process, as does a test that collects its own."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a file in tests/golden; `pytest --golden` writes it."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--golden"):
            path.write_text(text)
        assert text == path.read_text()

    return compare
