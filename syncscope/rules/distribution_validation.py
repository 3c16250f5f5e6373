"""A `torch.distributions` distribution over tensors of the device, with its checks on.

Why it waits
------------
By default a distribution checks its parameters when it is made, and values in `log_prob`: each check asks whether all are
valid, and the host waits for the answer. `validate_args=False` leaves that out, as `python -O` does for all.

When a fix pays
---------------
Where distributions are made or asked in every step, as in reinforcement learning: each check is a wait. Keep the checks while
parameters are not yet trusted, and in code that runs rarely.

Fix safety
----------
Suggested, for the check is what tells first that a network has diverged: NaN in the parameters no longer raises an error, nor,
where they are not valid by how they are computed as in `Normal(mean, spread.exp())`, do other values. For a whole program that
is one line, `torch.distributions.Distribution.set_default_validate_args(False)`. `torch.compile`, called
anywhere, does the same for all that runs in the process from then on: a program that compiles its model checks nothing.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.DISTRIBUTION_VALIDATE,)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = ("drop_validation",)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    checked = "its parameters"
    match site.node:
        case ast.Call(func=ast.Attribute(attr="log_prob" | "cdf"), args=[value, *_]):
            checked = f"whether {view.quote(value)} can be drawn"
    return f"{view.quote(site.node)} checks {checked} and waits for the answer: validate_args=False leaves that out"
