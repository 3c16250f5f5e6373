"""`torch.cuda.empty_cache()` in the step.

Why it waits
------------
To give memory back to the driver, the host waits until the device has done everything; the next allocations ask the driver
again, which is slow and waits too. PyTorch uses the memory again by itself.

When a fix pays
---------------
Always in the step: memory that is given back is asked for again at once. It pays to keep it between phases of very different
sizes, as before evaluation.

Fix safety
----------
To take it out is suggested, not applied, because memory that PyTorch holds is then not free for other programs, or for itself
in other sizes.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.EMPTY_CACHE,)
SEEN_AS = ("cudaFree", "hipFree", "clReleaseMemObject")
REWRITES = ("take_out_empty_cache",)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits until the device has done everything, and makes the next allocations slow"
