"""A barrier between ranks, or waiting for a collective's end, in the step.

Why it waits
------------
Every rank waits until the slowest has come, and the host of each waits too. Collectives order themselves on the device: a
barrier is needed where files or other processes are shared, at most, and those are not in a step.

What to do
----------
Take it out of the step: `all_reduce` and DistributedDataParallel order themselves. Where one rank writes a checkpoint that the
others read, put one barrier after the writing, once an epoch. `work.wait()` of an asynchronous collective makes the stream
wait, not the host, on NCCL; on Gloo it is the host that waits, so call it where the result is used, not at once.

When a fix pays
---------------
Where ranks reach it at different times: then each waits for the slowest, and none has work queued afterwards. Not around
something rare, as a checkpoint, or where a collective follows at once, which waits all the same.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.BARRIER,)
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
        """,
        instead="""
        import torch
        import torch.distributed as dist

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
            dist.barrier()  # once, where a file is shared after it
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} lets every rank wait for the slowest"
