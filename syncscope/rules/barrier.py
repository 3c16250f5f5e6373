"""A barrier between ranks, or waiting for a collective's end, in the step.

Why it waits
------------
Every rank waits until the slowest has come, and the host of each waits too. Collectives order themselves on the device: a
barrier is needed where files or other processes are shared, at most, and those are not in a step.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.EXPLICIT
SEVERITY = Severity.WARNING
OPS = ("barrier",)
SEEN_AS = (
    "c10d::barrier",
    "nccl:barrier",
)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.distributed as dist

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
                dist.barrier()  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} lets every rank wait for the slowest"
