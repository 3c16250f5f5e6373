"""Programs that other processes build first: the same kernels, whatever becomes of the processes."""

import errno
import json
import os
import signal
import subprocess
from pathlib import Path

import pyopencl as cl
import pytest

from syncscope.kernels import beside, programs

NAMES_CPU = f"""
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
import pyopencl as cl
from old_pocl import name_cpu
for platform in cl.get_platforms():
    for device in platform.get_devices():
        name_cpu(device)
"""


@pytest.fixture
def builders(monkeypatch, tmp_path):
    """Processes that build, on any device, one unless a test needs more; each finds nothing built yet."""
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(beside, "is_gpu", True)
    monkeypatch.setattr(beside, "BUILDERS", 1)
    monkeypatch.setattr(beside, "_idle", None)
    monkeypatch.setattr(beside, "_keys", None)
    monkeypatch.setattr(beside, "_wasted", 0)
    monkeypatch.setattr(programs, "is_gpu", True)  # so that what is built side by side is built by threads
    # PoCL's wheel builds nothing for a processor that it has no name for. Drivers of GPUs, for which these are, need none.
    command = beside.interpreters.command
    monkeypatch.setattr(beside.interpreters, "command", lambda code: command(NAMES_CPU + code))
    made = []
    plain = beside._Builder.start

    def start(self):
        made.extend([self] if self not in made else [])
        return plain(self)

    monkeypatch.setattr(beside._Builder, "start", start)
    yield made
    for one in made:
        ended(one)


def ended(builder):
    if builder.process is not None:
        builder.process.stdin.close()
        builder.process.wait(200)


def text(n):
    return f"__kernel void one{n}(__global float *x) {{ *x = {n}; }}"


def kernels(numbers):
    return programs.side_by_side(lambda n: programs._built(text(n), f"one{n}", ()), numbers)


def test_they_build_what_is_asked_for_and_it_is_remembered(builders):
    asked = []
    plain = beside._Builder.asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside._Builder, "asked", lambda self, line: asked.append(plain(self, line)) or asked[-1])
        patch.setattr(beside, "BUILDERS", 2)
        patch.setattr(beside, "PAYS", 1e9)  # s: how fast this machine is just now decides nothing
        assert [kernel.function_name for kernel in kernels([11, 12, 13])] == ["one11", "one12", "one13"]
        assert len(asked) == 3
        assert all(seconds > 0 for seconds in asked)
        assert len({one.process.pid for one in builders}) == 2
        kernels([11, 12, 13])
        beside._keys = None  # as another process finds it
        kernels([11, 12, 14])
    assert len(asked) == 4


def test_who_waits_for_one_kernel_asks_no_process(builders):
    kernel = programs._built(text(21), "one21", ())
    assert isinstance(kernel, cl.Kernel)
    assert not builders


@pytest.mark.parametrize("how", ["killed", "cannot start", "says nonsense"])
def test_what_they_do_not_build_is_built_here(builders, how, monkeypatch):
    if how == "killed":
        kernels([30, 31])
        for one in builders:
            os.kill(one.process.pid, signal.SIGKILL)
            one.process.wait()
    else:
        code = "import sys; sys.exit(3)" if how == "cannot start" else "print('what?' * 9, flush=True); input()"
        command = [beside.interpreters.sys.executable, "-c", code]
        monkeypatch.setattr(beside.interpreters, "command", lambda code: command)
    assert [kernel.function_name for kernel in kernels([32, 33, 34])] == ["one32", "one33", "one34"]


@pytest.mark.skipif(os.name == "nt", reason="nobody counts places on Windows: a descriptor is not handed on there")
def test_programs_share_the_places_of_a_device(builders):
    kernels([90, 91])
    (builder,) = builders
    with pytest.raises(BlockingIOError):
        beside._Builder().start()  # as another program
    beside._idle = None
    beside.start()  # with none for itself
    assert len(kernels([92, 93])) == 2
    ended(builder)
    handed = beside.places.take(1, "0:0")  # it is free again
    assert len(handed) == 1
    os.close(*handed)


@pytest.mark.skipif(os.name == "nt", reason="nobody counts places on Windows: a descriptor is not handed on there")
def test_where_files_have_no_locks_nobody_counts(builders, monkeypatch):
    def no_locks(handle, how):
        opened.append(handle)
        raise OSError(errno.ENOLCK, "No locks available")

    opened = []
    monkeypatch.setattr("fcntl.flock", no_locks)
    assert beside.places.take(2, "0:0") == ()
    (handle,) = opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_an_error_is_the_drivers_own(builders):
    with pytest.raises(cl.RuntimeError, match="BUILD_PROGRAM_FAILURE"):
        programs.side_by_side(lambda n: programs._built("__kernel void no(this is no C", "no", ()), [1, 2])


def test_a_driver_that_keeps_nothing_is_left_alone(builders):
    for n in range(3):
        beside.by_a_pool()
        try:
            beside.built(text(40 + n), ["-w"], there=1.0, here=0.9)
        finally:
            del beside._of_pool.here
    assert not beside.serve()
    kernels([50, 51])
    assert not builders


def test_an_emptied_cache_is_filled_again(builders):
    beside.by_a_pool()
    try:
        beside.built(text(60), ["-w"], there=0.5, here=0.01)
        assert beside._known()
        assert beside._file().exists()
        beside.built(text(60), ["-w"], there=0.0, here=5.0)
    finally:
        del beside._of_pool.here
    assert not beside._known()
    assert not beside._file().exists()


def test_a_home_that_cannot_be_written_to_costs_no_kernel(builders, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "file"))
    assert len(kernels([70, 71])) == 2


def test_a_process_ends_where_nobody_asks_it_anything(builders):
    code = "from syncscope import opencl_builder as b; b.IDLE = 0.2; b.main(0, 0)"
    command = beside.interpreters.command(code)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        said = []
        for source in (text(80), "no C"):
            process.stdin.write(json.dumps((source, ["-w"])) + "\n")
            process.stdin.flush()
            said.append(process.stdout.readline())
        assert float(said[0]) > 0
        assert said[1] == "\n"
        assert process.wait(300) == 0  # its input is still open
