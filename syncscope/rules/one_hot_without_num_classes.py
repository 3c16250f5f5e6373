"""`one_hot` of a tensor on the device without `num_classes`.

Why it waits
------------
There is a column for each class up to the largest that occurs. The host must know that one to make them, so it waits until the
device has computed everything that was asked for before. `num_classes=` tells it.

Fix safety
----------
The classes of an `argmax` over a dimension are at most as many as that dimension has elements. Unsafe, because there are then
always that many columns, also where the last classes do not occur, which is mostly what was meant.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("one_hot",)
SEEN_AS = ("aten::one_hot",)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor):
            best = scores.argmax(dim=1)
            return F.one_hot(best)  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(scores: torch.Tensor):
            best = scores.argmax(dim=1)
            return F.one_hot(best, num_classes=scores.shape[1])
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(label: torch.LongTensor):
            return F.one_hot(label)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn the largest class: num_classes= tells it"


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    best = function.op(function.value(op.base)) if op is not None else None
    if op is None or best is None or best.name != "argmax" or not isinstance(site.node, ast.Call) or op.args:
        return None
    dim = best.argument(0, "dim")
    if dim is None or not isinstance(best.base, ast.Name) or function.constant(dim) is None:
        return None
    start = function.definition(op.base)
    if start is not None and any(
        function.disturbed(n.id, start, site.node) for n in (best.base, op.base) if isinstance(n, ast.Name)
    ):
        return None
    draft = function.draft()
    classes = draft.part("{x}.shape[{d}]", x=best.base, d=dim)
    draft.replace(site.node, "{call}", call=draft.call(site.node, {}, num_classes=classes))
    return draft.fix(
        "say how many classes there are",
        Safety.UNSAFE,
        "there is a column for every class, also for the last ones where they do not occur",
    )
