"""Which line made each node of autograd's graph, and which called backward: for what autograd's own threads launch.

The nodes are counted by a function of torch's, which tells of them while somebody records (lines/autograd.h); that costs some
50 ns a node, and finds the line of every forward operator whatever else is recorded.
"""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Any

from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.lines.library import library

CURRENT_NODE = "_ZN5torch8autograd16get_current_nodeEv"
THREAD = "_ZN2at14RecordFunction15currentThreadIdEv"
COUNTS = "_ZN2at15sequence_number17get_and_incrementEv"
"""Functions of torch's: the node on which a thread works, the thread's number, and the number of a new node."""


def install(torch: Any) -> None:
    """Until the patches are taken back: notes the lines of autograd's nodes. Nothing where torch is another than we know."""
    found = library()
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if found is None or not path.exists():
        return
    try:
        of_torch = c.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        current, thread, counts = (
            c.cast(getattr(of_torch, name), c.c_void_p) for name in (CURRENT_NODE, THREAD, COUNTS)
        )
        nodes = [torch._C._functions.UndefinedGrad() for _ in range(3)]  # of their own, without an operator
        sizes = [(id(node), type(node).__basicsize__, node._sequence_nr()) for node in nodes]
    except (OSError, AttributeError, TypeError):
        return
    if all(found.fits(*size, thread) for size in sizes):
        patches.later(found.leave_torch)
        found.know_torch(current, counts)
