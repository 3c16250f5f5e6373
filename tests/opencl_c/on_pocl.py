"""Runs one example of a rule on PoCL: `{"code": ..., "run": ...}` comes in, what became of it goes out as one word."""

import json
import sys

import numpy as np
import pyopencl as cl

told = json.load(sys.stdin)
device = next(d for p in cl.get_platforms() if "Portable" in p.name for d in p.get_devices())
context = cl.Context([device])
queue = cl.CommandQueue(context)


def run(name, items, group, *arguments):
    """Compiles the code, enqueues its kernel, and copies back what the arrays hold then."""
    kernel = getattr(cl.Program(context, told["code"]).build(), name)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    held = [cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray) else a for a in arguments]
    wide, grouped = ((n if isinstance(n, tuple) else (n,)) for n in (items, group))
    kernel(queue, wide, grouped, *held)
    for array, buffer in zip(arguments, held, strict=True):
        if isinstance(array, np.ndarray):
            cl.enqueue_copy(queue, array, buffer)


waits = 0


def counted(function):
    """A function of pyopencl by which the host waits, makes a buffer or an event: counted."""

    def call(*args, **given):
        global waits
        waits += 1
        return function(*args, **given)

    return call


scope = {"np": np, "cl": cl, "queue": queue, "context": context, "run": run, "code": told["code"]}
try:
    if told["suffix"] == ".py":
        exec(told["code"].replace("queue.finish(", "finish("), scope)
        for name in ("enqueue_copy", "Buffer"):
            setattr(cl, name, counted(getattr(cl, name)))
        scope["finish"] = counted(queue.finish)
    exec(told["run"], scope)
    print("right" if scope["right"] else "wrong", waits + told["code"].count("wait_for="))
except cl.Error as error:
    print("error", str(error).split("\n")[0])
