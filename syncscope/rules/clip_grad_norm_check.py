"""`clip_grad_norm_(..., error_if_nonfinite=True)`.

Why it waits
------------
To raise an error for a norm that is NaN or inf, the host reads it, and waits until the device has computed all gradients.

When a fix pays
---------------
In every step: the check waits for the whole backward pass, just before the optimizer could be queued. Not while you look for
the step at which gradients blow up.

Fix safety
----------
Unsafe without the check, because a norm that is not finite then makes all gradients NaN or zero and nothing is said.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.CLIP_GRAD_NORM,)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = ("drop_norm_check",)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    return "error_if_nonfinite=True reads the norm of all gradients, and waits for it"
