"""The fallback without a compiler: the same events, in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syncscope import kineto

FAKE = """
import ctypes, os
os.environ["SYNCSCOPE_HOOK"] = "ctypes"
from collections import Counter
from syncscope.model.trace import Kind
from syncscope.tracers.opencl import abi, dispatch
from syncscope.tracers.session import Session
fake = ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
before = list((ctypes.c_void_p * 149).from_address(table))
with Session() as session:
    dispatch.tables.hook(table, "fake")
    fake.enqueue(300)
    fake.blocking_read(2)
    session.step()
trace = session.trace
print(sorted(Counter(Kind(k).name for k in trace.kind.tolist()).items()))
print({{e.name for e in trace if e.kind == Kind.KERNEL}}, {{e.duration for e in trace if e.kind == Kind.KERNEL}})
print(sum(int(f) & 1 for f in trace.flags.tolist()), trace.meta["devices"])
print(list((ctypes.c_void_p * 149).from_address(table)) == before, ctypes.c_int.in_dll(fake, "live_events").value)
print(trace.meta["notes"])
print({{e.place and e.place.line for e in trace if e.kind == Kind.CALL}})
"""
INTERRUPTED = """
import os, sys
os.environ["SYNCSCOPE_HOOK"] = "ctypes"
sys.path.insert(0, {tests!r})
from old_pocl import name_cpu
import pyopencl as cl, numpy as np, syncscope
device = cl.get_platforms()[0].get_devices()[0]
name_cpu(device)
context = cl.Context([device])
program = cl.Program(context, '''
__kernel void slow(__global float *a, int n) {{ float x = a[0]; for (int i = 0; i < n; i++) x = x * 0.999f + 1; a[0] = x; }}
''').build()
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
with syncscope.trace("run.json") as trace:
    queue = cl.CommandQueue(context)
    for n in range(10_000):
        program.slow(queue, (1,), None, memory, np.int32(2_000_000))
        queue.finish()
        if n == 2:
            print("begin", flush=True)
"""


def test_the_same_events_as_the_compiled_hook(python: Any, fake_library: Any) -> None:
    done = python(FAKE.format(fake=fake_library._name))
    assert done.returncode == 0, done.stderr
    kinds, work, flags, restored, notes, lines = done.stdout.splitlines()
    assert kinds == "[('CALL', 302), ('COPY', 2), ('KERNEL', 300), ('STEP', 1)]"
    assert work == "{'nothing'} {100}"
    assert flags == "2 [{'name': 'fake', 'totalGlobalMem': 1073741824}]"
    assert restored == "True 0"
    assert "recorded through ctypes" in notes
    assert done.stderr == ""
    own = FAKE.splitlines()
    asked = (own.index("    fake.enqueue(300)") + 1, own.index("    fake.blocking_read(2)") + 1)
    assert lines in (f"{{{asked[0]}, {asked[1]}}}", "{None}")


def test_ctrl_c_arrives_although_the_driver_is_in_between(pocl: Any, tmp_path: Path, start: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text(INTERRUPTED.format(tests=str(Path(__file__).parents[1])))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = start([sys.executable, str(script)], **pipes, text=True, cwd=tmp_path, env=environment)
    assert child.stdout.readline() == "begin\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=300)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert any(e.name == "slow" for e in kineto.read(tmp_path / "run.json"))


def test_no_compiler_is_said(python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    done = python("""
import shutil
from pathlib import Path
from syncscope.tracers.opencl import compiled
shutil.copytree(compiled.SOURCE.parent, "hook", ignore=shutil.ignore_patterns("*.so"))
compiled.SOURCE = Path("hook", "icd.c")  # no extension lies beside this one
print(type(compiled.library()).__name__, compiled.why_not())
""")
    assert done.stdout.startswith("Library no native hook ("), done.stderr
    assert "no-compiler" in done.stdout


IN_PYTHON = """
from syncscope.tracers.hooks import methods
methods.module = lambda source: None  # as where no compiler is
import syncscope, syncscope.kernels, torch
x = torch.tensor([[1.0, 2.0], [1.0, 2.0]]).to("ocl").requires_grad_()
with syncscope.trace() as trace:
    x.sum().backward()
    x.sum().item()
    torch.unique(x, dim=0)
    torch.unique(x)
    x.nonzero()
    trace.step()
print(sorted(read.op for read in trace.report(show=False).reads))
print("unique_dim" in vars(torch._VF))
"""


def test_syncs_of_torch_are_heard_in_python_where_no_part_in_c_is(forked: Any) -> None:
    pytest.importorskip("pyopencl")
    done = forked("-c", IN_PYTHON)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['item', 'nonzero', 'unique', 'unique']\nFalse\n"
