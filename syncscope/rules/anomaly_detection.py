"""Autograd's anomaly detection left on.

Why it waits
------------
It asks every gradient for NaN, and reads each answer: the host waits once for every operation of the backward pass. It is
meant for the search of a fault.

When a fix pays
---------------
Always, outside of a search for a NaN: every operator of the backward pass is checked, on every step.

Fix safety
----------
Unsafe without it, because a gradient that is NaN no longer raises an error that names the operation.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.ANOMALY,)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = ("switch_off_anomaly_detection",)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} asks every gradient for NaN, and waits for each answer"
