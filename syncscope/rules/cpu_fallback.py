"""An operator that the OpenCL backends do not have: the CPU runs it.

Why it waits
------------
Its arguments are copied to the host, which waits until the device has computed them and everything before them; the result is
copied back. Reported with `--backend ocl`.

What to do
----------
Say it in operators that the device has: products, reductions and pointwise ones. Where that cannot be, move it out of the step,
or give it host tensors on purpose, once for many: `torch.stack(parts).cpu()` copies once.

When a fix pays
---------------
Where the operator runs in every step: the tensor goes to the host and back each time. Not in set-up, and not where the tensor
is small and nothing is queued.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.OCL_FALLBACK,)
SEEN_AS = ("fallback",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return torch.linalg.svdvals(x).square().sum()  # !
        """,
        inputs="x: finite[n, m]",
        instead="""
        import torch

        def forward(x: torch.Tensor):
            return x.square().sum()
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"the OpenCL device has no {view.quote(site.node)}: the CPU runs it, and the host waits for its arguments"
