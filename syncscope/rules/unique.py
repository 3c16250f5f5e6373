"""`unique` or `unique_consecutive` of a tensor on the device.

Why it waits
------------
The result has one element for each different value. The host must know how many there are to make it, so it waits until
the device has computed everything that was asked for before.

What to do
----------
- Only the number is used: count in a fixed shape, as below.
- Only whether there are any two: `(x.sort().values.diff() == 0).any()` stays on the device.
- The values are known before (labels, classes): `torch.bincount(x, minlength=n)` waits too, but
  `torch.zeros(n).scatter_add_(0, x, ones)` counts all n classes in a fixed shape.
- The values are the same from step to step: look for them once, before the loop.

Fix safety
----------
How many different values there are can be counted in a fixed shape: sort, and count the places where neighbours differ.
Unsafe, because the count is then a tensor on the device and no Python int, and because an empty tensor is counted as one
value. Where the values themselves are used there is no fix: that is a true dependency.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._guards import is_elif
from syncscope.rules._lengths import length, number_of_elements

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("unique", "unique_consecutive")
SEEN_AS = (
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
)
EXAMPLES = (
    Example(
        """
        import torch

        def loss(target: torch.LongTensor):
            labels = torch.unique(target).numel()  # !
            return labels
        """,
        """
        import torch

        def loss(target: torch.LongTensor):
            labels = target.flatten().sort().values.diff().count_nonzero() + 1
            return labels
        """,
        Safety.UNSAFE,
        "target: label[n + 1, h + 1]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            return x.sum() / len(torch.unique(x))  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            ordered = x.flatten().sort().values
            return x.sum() / ((ordered[1:] != ordered[:-1]).count_nonzero() + 1)
        """,
        Safety.UNSAFE,
        "x: float[n + 1, h + 1]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            values = torch.unique(x)  # !
            half = x / 2
            return half.sum() / len(values)
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            half = x / 2
            ordered = x.flatten().sort().values
            return half.sum() / ((ordered[1:] != ordered[:-1]).count_nonzero() + 1)
        """,
        Safety.UNSAFE,
        "x: float[n + 1, h + 1]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            values, counts = torch.unique(x, return_counts=True)  # !
            return values[counts.argmax()]
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many different values there are"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    op = function.op(site.node)
    if op is None or op.args or op.keywords.keys() - {"sorted"} or not isinstance(site.node, ast.Call):
        return None
    used, definition = function.carried(site.node)
    count = number_of_elements(function, used) or length(function, used)
    statement = function.statement(used)
    if count is None or statement is None:
        return None
    fact = site.fact_of(op.base)
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    values = "{x}.flatten().sort().values" if site.op == "unique" else "{x}.flatten()"
    if fact.dtype in (Dtype.INT, Dtype.BOOL):
        draft.replace(count, f"{values}.diff().count_nonzero() + 1", x=op.base)
    elif simple(function, statement, count) and function.pure(op.base):
        ordered = function.fresh("ordered")
        draft.insert_before(statement, f"{ordered} = {values}", x=op.base)
        draft.replace(count, f"({ordered}[1:] != {ordered}[:-1]).count_nonzero() + 1")
    else:
        return None
    return draft.fix(
        "sort, and count where neighbours differ",
        Safety.UNSAFE,
        "the count is a 0-d tensor that stays on the device, no Python int, and an empty tensor counts as one value",
    )


def simple(function: Function, statement: ast.stmt, node: ast.expr) -> bool:
    """Whether an expression is evaluated once, and first, when its statement runs: code can be put before it."""
    inside = [n for n in function.around(node) if n is not statement]
    if isinstance(statement, (ast.While, ast.With, ast.For)) or function.parent(statement) is None:
        return False
    if isinstance(statement, ast.If) and is_elif(function, statement):
        return False
    conditional = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)
    for n in inside:
        if n is function.parent(statement):
            break
        if isinstance(n, conditional):
            return False
    return True
