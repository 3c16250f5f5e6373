"""A Python list or a numpy array as an index into a tensor of the device: `x[[0, 2]]`.

Why it waits
------------
The index is made into a tensor on the host and copied to the device, and the host waits for the copy, which comes after
everything that was asked for before. An index that stays the same can be made once, before the loop.

Fix safety
----------
A few rows that are written out can be taken one by one and stacked, without any index. Unsafe only in what is said of an index
that is out of range.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.COPY
SEVERITY = Severity.NOTE
OPS = ("index_list",)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::index", "aten::to")
FEW = 8  # rows: more are slower to take one by one
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x.cuda()[[0, 2]]  # !
        """,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            return x[[2, 0]]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            return torch.stack((x[2], x[0]))
        """,
        Safety.UNSAFE,
        "x: finite[n + 3, m]",
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} copies its index to the device, and waits for the copy"


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if (
        not isinstance(taken, ast.Subscript)
        or not isinstance(taken.ctx, ast.Load)
        or not isinstance(taken.slice, ast.List)
    ):
        return None
    rows = [function.constant(e) for e in taken.slice.elts]
    whole = [r for r in rows if isinstance(r, int)]
    if len(whole) != len(rows) or not 1 <= len(rows) <= FEW or not isinstance(taken.value, ast.Name):
        return None
    draft = function.draft()
    each = ", ".join(f"{{x}}[{row}]" for row in whole) + ("," if len(whole) == 1 else "")
    draft.replace(taken, f"torch.stack(({each}))", x=taken.value)
    return draft.fix("stack the rows", Safety.UNSAFE, "an index that is out of range is reported in other words")
