"""Runs examples of rules on PoCL: a line `{"code": ..., "run": ..., "suffix": ...}` comes in, `running` goes out when
its kernel is enqueued, and then what became of it, in one word, and how often the host waited.
"""

import json
import sys
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest import mock

import numpy as np
import pyopencl as cl

sys.path.insert(0, str(Path(__file__).parents[1]))
from old_pocl import name_cpu

# Of the header's functions those that an example names: PoCL's wheel reads all of it for each otherwise, which takes nine
# tenths of the time. The file alone: its package would import torch.
told = spec_from_file_location("pocl_header", Path(__file__).parents[2] / "syncscope" / "kernels" / "pocl_header.py")
pocl_header = module_from_spec(told)
told.loader.exec_module(pocl_header)

WHEEL = "pocl-binary-distribution"
device = next(d for p in cl.get_platforms() if "Portable" in p.name for d in p.get_devices())
name_cpu(device)
context = cl.Context([device])
try:
    is_of_wheel = version(WHEEL) in device.platform.version
except PackageNotFoundError:
    is_of_wheel = False
HEADER = pocl_header.path(WHEEL) if is_of_wheel else None


def built(code):
    if HEADER is None:
        return cl.Program(context, code).build()
    return cl.Program(context, pocl_header.declarations(HEADER, code) + code).build([f"-D{pocl_header.GUARD}"])


class Example:
    """One example on its way; `waits` counts the calls by which the host waits, or makes a buffer or an event."""

    def __init__(self, code, suffix):
        self.code, self.suffix = code, suffix
        self.queue = cl.CommandQueue(context)
        self.waits = code.count("wait_for=")

    def run(self, name, items, group, *arguments):
        """Compiles the code, enqueues its kernel, and copies back what the arrays hold then."""
        kernel = getattr(built(self.code), name)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        held = [cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray) else a for a in arguments]
        wide, grouped = ((n if isinstance(n, tuple) else (n,)) for n in (items, group))
        kernel(self.queue, wide, grouped, *held)
        self.queue.flush()
        print("running", flush=True)
        for array, buffer in zip(arguments, held, strict=True):
            if isinstance(array, np.ndarray):
                cl.enqueue_copy(self.queue, array, buffer)

    def counted(self, function):
        def call(*args, **given):
            self.waits += 1
            return function(*args, **given)

        return call

    def outcome(self, run):
        """What the lines `run` say of it."""
        scope = {"np": np, "cl": cl, "queue": self.queue, "context": context, "run": self.run, "code": self.code}
        with ExitStack() as stack:
            try:
                if self.suffix == ".py":
                    exec(self.code.replace("queue.finish(", "finish("), scope)
                    for name in ("enqueue_copy", "Buffer"):
                        stack.enter_context(mock.patch.object(cl, name, self.counted(getattr(cl, name))))
                    scope["finish"] = self.counted(self.queue.finish)
                exec(run, scope)
            except cl.Error:
                return "error"
        return "right" if scope["right"] else "wrong"


for line in sys.stdin:
    told = json.loads(line)
    example = Example(told["code"], told["suffix"])
    print(example.outcome(told["run"]), example.waits, flush=True)
