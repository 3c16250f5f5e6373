"""`bincount` of a tensor on the device.

Why it waits
------------
The result has as many bins as the largest value needs. The host must know that value to make it, so it waits until the device
has computed everything that was asked for before. A `minlength` alone does not help: there may be more.

Fix safety
----------
With a `minlength` that is large enough the bins can be counted in a fixed shape, by adding ones at the values. Unsafe, because
a value of `minlength` or more is then an error instead of one more bin.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("bincount",)
SEEN_AS = ("aten::bincount",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(label: torch.LongTensor):
            return torch.bincount(label, minlength=6)  # !
        """,
        """
        import torch

        def forward(label: torch.LongTensor):
            return torch.zeros(6, dtype=torch.long, device=label.device).index_add_(0, label, torch.ones_like(label))
        """,
        Safety.UNSAFE,
        "label: index[n] < 6",
    ),
    Example(
        """
        import torch

        def forward(label: torch.LongTensor):
            return torch.bincount(label)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn the largest value, which says how many bins there are"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or site.fact_of(op.base).dtype is not Dtype.INT:
        return None
    size = op.argument(1, "minlength")
    if size is None or op.argument(0, "weights") is not None or not function.pure(op.base) or not function.pure(size):
        return None
    draft = function.draft()
    draft.replace(
        site.node,
        "torch.zeros({n}, dtype=torch.long, device={x}.device).index_add_(0, {x}, torch.ones_like({x}))",
        n=size,
        x=op.base,
    )
    return draft.fix(
        "count in as many bins as were asked for",
        Safety.UNSAFE,
        "a value as large as minlength is an error, no further bin, and values must be int64",
    )
