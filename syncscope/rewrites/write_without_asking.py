"""`if m.any(): x[m] = number` without asking: where nothing is masked, nothing is written."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import test_of
from syncscope.codemod.proofs import is_mask, one_value
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            if low.any():  # !
                x[low] = 0  # no debts
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            x[low] = 0  # no debts
            return x
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or function.is_elif(statement):
        return None
    mask = asked_for_any(function, test)
    if mask is None or statement.orelse or len(statement.body) != 1 or not function.pure(mask):
        return None
    write = statement.body[0]
    target = write.targets[0] if isinstance(write, ast.Assign) and len(write.targets) == 1 else None
    if (
        not isinstance(write, ast.Assign)
        or not isinstance(target, ast.Subscript)
        or not function.same(target.slice, mask)
        or not is_mask(function.fact(mask))
        or not one_value(function, function.fact(write.value), write.value)
    ):
        return None
    draft = Draft(function)
    draft.replace(statement, "{x}[{m}] = {v}", x=target.value, m=mask, v=write.value)
    return draft.fix(
        "write without asking",
        Safety.UNSAFE,
        "the write is also made where nothing is masked: it raises where the tensor is a leaf that requires grad",
    )


def asked_for_any(function: Function, test: ast.expr) -> ast.expr | None:
    """The mask m of `m.any()`, `m.sum() > 0`, `m.any() > 0`, `m.count_nonzero() != 0`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
        if function.constant(test.comparators[0]) != 0:
            return None
        test = test.left
    op = function.op(test)
    return op.base if op is not None and op.name in ("any", "sum", "count_nonzero") and not op.args else None
