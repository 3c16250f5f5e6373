"""`torch.cuda.synchronize()` in the step.

Why it waits
------------
The host waits until the device has done everything that was asked for, and asks for nothing more meanwhile. It belongs before
a clock is read, and nowhere else: results are ordered on the device without it.

When a fix pays
---------------
Where it is left over from timing or from a search for an error. Not around a measurement that needs it, and not once an
epoch.

Fix safety
----------
Taking it out is suggested, not applied, because a clock may be read after it; where one is read in the same function, there is
no fix.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.SYNCHRONIZE,)
SEEN_AS = (
    *("cudaDeviceSynchronize", "cudaStreamSynchronize", "cuCtxSynchronize", "cuStreamSynchronize"),
    *("hipDeviceSynchronize", "clFinish"),
)
REWRITES = ("take_out_synchronize",)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits until the device has done everything"
