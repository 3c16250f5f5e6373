"""A Python number beside a tensor of the device as parameters of a distribution: `Normal(mean, 1.0)`.

Why it waits
------------
The parameters are brought to one shape, for which the number is made a tensor of the device: it is copied from the host, and
the host waits for the copy, which comes after everything that was asked for before. `StudentT`, `HalfNormal`, `HalfCauchy`,
`Chi2`, `Binomial` and `Multinomial` bring numbers of their own. `validate_args=False` changes nothing about it. On the CPU and
on the OpenCL backends there is no such wait.

What to do
----------
- Give all parameters as tensors of the device: `Normal(mean, torch.ones_like(mean))`, `mean.new_ones(())`.
- Parameters that stay the same are buffers of the module.
- `HalfNormal(scale).log_prob(x)` and the like in a loop: make the distribution once, before it.

When a fix pays
---------------
Where the distribution is made in every step. Not for one that is made in `__init__` and kept.

Fix safety
----------
Safe for a number that is written out: the same value, dtype and shape.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.DISTRIBUTION_NUMBER,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::lift_fresh", "aten::to")
REWRITES = ("make_parameter_on_device",)
EXAMPLES = (
    Example(
        """
        import torch
        from torch.distributions import HalfNormal, Normal

        def prior(scale: torch.Tensor, x: torch.Tensor):
            near = HalfNormal(scale, validate_args=False)  # !
            far = Normal(x.mean(), x.std(), validate_args=False)
            return near.log_prob(x) + far.log_prob(x)
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    if site.operand is None:
        return f"{view.quote(site.node)} copies a number of its own to the device, and waits for the copy"
    return f"{view.quote(site.operand)} is copied to the device for {view.quote(site.node)}, and the host waits for the copy"
