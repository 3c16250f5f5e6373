"""A process that builds OpenCL C for another (`syncscope.kernels.beside`): then it lies in the driver's cache.

It is asked by one line of JSON after the other on standard input, (source, options), and answers each with the seconds
that it took, or with an empty line where the source does not build. It imports neither torch nor our kernels, and ends
where it is asked nothing.
"""

from __future__ import annotations

import contextlib
import json
import select
import signal
import sys
import warnings
from time import perf_counter

# Seconds without a question, before the first one and after it, then it ends: its context takes memory of the device.
FIRST, IDLE = 60.0, 5.0


def main(platform: int, device: int) -> None:
    """Builds until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is its parent's: it ends with its input
    warnings.simplefilter("ignore")
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[platform].get_devices()[device]])
    with contextlib.suppress(BrokenPipeError):
        patience = FIRST
        while line := _asked(patience):
            patience = IDLE
            source, options = json.loads(line)
            began, took = perf_counter(), ""
            with contextlib.suppress(cl.Error):
                cl.Program(context, source).build(options, cache_dir=False)
                took = f"{perf_counter() - began:.4f}"
            print(took, flush=True)


def _asked(patience: float) -> str:
    """The next line, or "" where there is none any more."""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], patience)[0]:  # which has it of sockets only
        return ""
    return sys.stdin.readline()
