"""A tensor of the device printed, formatted or logged.

Why it waits
------------
To write a number down the host reads it, and waits until the device has computed it and everything before it. Loggers and
progress bars read what they are given, also where it is never shown.

What to do
----------
- Write every n steps, and read all numbers of a line with one `.tolist()`.
- Give a logger that knows tensors the tensor, detached, where it collects: not on every step where it writes.
- Round on the device and read once: a format of ten numbers waits ten times.

When a fix pays
---------------
Where a line is written on every step. Writing every n-th line takes the wait from all the others; at a line per epoch there
is nothing to gain.

Fix safety
----------
What is written for debugging asks first whether the logger writes it: unsafe, because no error in the text is raised then.
Text that is only used under an `if`, every n steps, can be made there: safe where nothing but plain expressions stands
between. A line in a loop that counts its passes can be written every 50 passes: suggested, not applied, because fewer lines
are written. Otherwise there is no fix: keep the tensors, and read them together.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.FORMAT,)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense", "aten::_to_copy", "aten::copy_")
REWRITES = (
    "read_where_used",
    "log_rarely",
)
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, step: int):
            for x in loader:
                loss = model(x.cuda()).mean()
                line = f"{step}: {loss}"  # !
                step += 1
                if step % 100 == 0:
                    print(line)
        """
    ),
    Example(
        """
        import torch

        def report(x: torch.Tensor):
            print(f"{x.shape[0]} rows of {x.dtype}")
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.operand)} is written down: the host waits to read it"


def certain(site: Site, function: Function) -> bool:
    return True  # what is offered moves the text or writes it less often, whatever stands in it
