"""A clock read around device work without waiting for the device.

Why it waits
------------
It does not wait, and that is what is wrong: the host has only asked for the work when the clock is read, so the time is that of
asking. Wait for the device before each reading, or record events on the device.

When a fix pays
---------------
It makes the program no faster: it makes the number true. It costs a wait, so time every n-th step, or with events of the
device, which wait for nothing.

Fix safety
----------
Waiting before the clock is suggested, not applied, because it makes the host wait, and only the measurement wants that.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.TIMING,)
SEEN_AS = ()
REWRITES = ("wait_before_clock",)
EXAMPLES = (
    Example(
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            torch.cuda.synchronize()
            start = time.perf_counter()
            y = model(x)
            torch.cuda.synchronize()
            return time.perf_counter() - start
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} is read while the device still works: the time is that of asking, not of the work"
