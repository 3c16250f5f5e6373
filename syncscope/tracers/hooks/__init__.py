"""How a running program is heard: what is replaced in torch, pyopencl and Python's import, and who is told of it.

```text
    listening(Listener(read=...))        says what is to be heard, and for how long
      patches                            puts the hooks in place, and takes them all back
        torch  pyopencl  sync_debug  steps  imports       one library or one way of hearing each
          reads                          notes a read: the user's line, when, how long
            listeners                    are told
```
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import monotonic_ns

from syncscope.tracers.hooks import pyopencl, steps, sync_debug, torch
from syncscope.tracers.hooks.listeners import Listener, listeners
from syncscope.tracers.hooks.patches import beats, patches
from syncscope.tracers.opencl.dispatch import tables

EVERY = 50_000_000  # ns between two looks at what was loaded without an import
NOTHING = contextlib.nullcontext()
_looked = 0

for library, install in (*torch.INSTALL, *pyopencl.INSTALL):
    patches.when_imported(library, install)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Inside, the hooks are in place and the listener is told; for steps alone, one of torch's optimizers and of its backward
    pass are."""
    forget = []
    if listener.region is not None:
        forget.append(patches.when_imported("torch", torch.regions))
    if listener.sync_debug:
        forget.append(patches.when_imported("torch", sync_debug.install))
    if listener.step is not None:
        forget.append(beats.when_imported("torch.optim.optimizer", steps.install))
        forget.append(beats.when_imported("torch", steps.passes))
        forget.append(beats.when_imported("syncscope.kernels.capture", steps.replays))
    steps_alone = listener.step is not None and listener == Listener(step=listener.step)
    try:
        with beats.held() if listener.step else NOTHING, NOTHING if steps_alone else patches.held():
            listeners.add(listener)
            try:
                yield
            finally:
                listeners.remove(listener)
    finally:
        for one in reversed(forget):
            one()


def look() -> None:
    """Takes in libraries and drivers that were loaded without an import of Python's: to be called now and then."""
    global _looked
    if monotonic_ns() - _looked >= EVERY:
        _looked = monotonic_ns()
        beats.rescan()
        patches.rescan()
        tables.rescan()
