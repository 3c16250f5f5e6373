"""A tensor on the device as a condition: `if t:`, `while`, `assert`, `and`, `or`, `not`, `a if t else b`, `in`.

Why it waits
------------
Python can only go one way or the other, so the host waits until the device has computed the condition and everything before
it.

What to do
----------
- Both ways are cheap and end in tensors: compute both, and let `torch.where` choose.
- Gradients that are clipped by hand: scale them by `torch.where(norm > limit, limit / norm, 1.0)`, or `clip_grad_norm_`.
- The question is whether a mask selects anything: write the code so that it need not be asked (a sum over nothing is zero).
- A check of the input: ask in the dataset, on the host; or let the device check, `torch._assert_async`.
- A check of the loss: `bad |= ~torch.isfinite(loss)` on the device, and look every n steps.
- A loop that ends when something has converged: ask every n passes, and let `where` keep what is done.

When a fix pays
---------------
Where both ways are cheap, or the way that is mostly taken is known. Not where the branch skips most of the step's work: then
the wait buys more than it costs. Not for a check every n-th step.

Fix safety
----------
Where both ways end in tensors, `torch.where` lets the device choose: unsafe, because both ways are then computed on every
pass, and where the way not taken gives NaN or inf in its gradient, `where` passes NaN on. A check that only raises can
become `torch._assert_async`: it is suggested, not applied, because the error comes later, from the device, and is always a
RuntimeError. Suggested is also to ask first what Python knows, `debug and x.isnan().any()`, which then mostly decides.
"""

from __future__ import annotations

import ast

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.CONDITION,)
SEEN_AS = ("bool", "aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = (
    "ask_python_first",
    "draw_on_host",
    "write_without_asking",
    "scale_in_every_pass",
    "choose_assignment",
    "choose_return",
    "choose_expression",
    "go_through_numbers",
    "remember_flag",
    "check_on_device",
    "ask_every_few_passes",
    "drop_shortcut",
)
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.FloatTensor):
            total = x.sum()
            if x.abs().max() > 100:  # !
                total = total * 0.0
            return total
        """,
        """
        import torch

        def loss(x: torch.FloatTensor):
            total = x.sum()
            total = torch.where(x.abs().max() > 100, total * 0.0, total)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            if x is not None and x.shape[0] > 1:
                return x
            return x * 2
        """
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor, m: torch.BoolTensor):
            total = x.sum()
            if m.any():  # !
                total += x[m].std()
            return total
        """
    ),
    Example(
        """
        import torch

        def worst(x: torch.LongTensor):
            good = x < 1
            return x[good].max() if good.any() else x.new_zeros(())  # !
        """
    ),
)


def _asked(site: Site) -> ast.AST:
    """What is asked for its truth; of `a < b < c` all but the last comparison, each by itself."""
    match site.node, site.operand:
        case ast.Compare(left=first, ops=ops, comparators=others) as whole, ast.expr() as operand if (
            operand is not whole
        ):
            sides = [first, *others]
            at = sides.index(operand) if operand in sides[:-1] else -1
            if at >= 0 and not isinstance(ops[at], (ast.In, ast.NotIn)):
                left, right = sides[at], sides[at + 1]
                part = ast.Compare(left, [ops[at]], [right], lineno=left.lineno, col_offset=left.col_offset)
                part.end_lineno, part.end_col_offset = right.end_lineno, right.end_col_offset
                return part
    return site.operand or site.node


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(_asked(site))} is computed on the device: Python waits for it to know which way to go"
