"""A tensor of the device given to numpy or to `math`: `.numpy()`, `np.asarray(t)`, `np.mean(t)`, `math.exp(t)`.

Why it waits
------------
numpy and math work on the host's memory: the values are copied there, and the host waits until the device has computed them and
everything before them.

What to do
----------
- Most of numpy has a name in torch: `np.mean(t)` is `t.mean()`, `np.linalg.norm(t)` is `t.norm()`, `np.random.choice` a
  `torch.randint` on the device.
- Metrics in numpy or scikit-learn: collect on the device, and cross once after the loop.

When a fix pays
---------------
Where torch has the function: nothing leaves the device then. Not where numpy's result is wanted on the host anyway, as for
plots and files.

Fix safety
----------
What `math` does with one number, the tensor's own method does on the device. Unsafe, because the result is a tensor of the
tensor's dtype and no Python float, and because NaN or inf comes where `math` raises an error.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.NUMPY, Op.ASARRAY, Op.MATH)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::item", "aten::_local_scalar_dense")
REWRITES = ("compute_math_on_device",)
EXAMPLES = (
    Example(
        """
        import numpy as np
        import torch

        def forward(x: torch.Tensor):
            return np.asarray(x.cuda())  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} works on the host: it waits for {view.quote(site.operand)}"
