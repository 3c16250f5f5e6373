"""`if m.any(): x[m] = number` without asking, or chosen by `torch.where`: where nothing is masked, nothing is written."""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import decided_by
from syncscope.codemod.proofs import is_mask, one_value
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.choose_with_where import WHERE, choice

COUNTS = ("{m}.any(**_)", "{m}.sum(**_)", "{m}.count_nonzero(**_)")
ASKED = (*COUNTS, *(f"{count} {more} 0" for count in COUNTS for more in (">", "!=")))
COMPILES = True
CLEARS = True
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
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            out = torch.zeros_like(x)
            high = x > 1
            if high.any():  # !
                out[high] = x[high].square() * 2
            return out
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            out = torch.zeros_like(x)
            high = x > 1
            out = torch.where(high, x.square() * 2, out)
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = decided_by(site, function)
    return written(function, statement) or chosen(site, function, statement)


def written(function: Function, statement: ast.If | None) -> Fix | None:
    """The fix for one number: a mask takes it without looking."""
    write = seen(function, statement, "if {test}:\n    {x}[{m}] = {v}")
    asked = seen(function, write["test"], *ASKED) if write is not None else None
    if write is None or asked is None or statement is None or not function.same(write["m"], asked["m"]):
        return None
    mask, value = write["m"], write["v"]
    if (
        not function.pure(mask)
        or not is_mask(function.fact(mask))
        or not one_value(function, function.fact(value), value)
    ):
        return None
    draft = Draft(function)
    draft.replace(statement, "{x}[{m}] = {v}", x=write["x"], m=asked["m"], v=value)
    return draft.fix(
        "write without asking",
        Safety.UNSAFE,
        "the write is also made where nothing is masked: it raises where the tensor is a leaf that requires grad",
    )


def chosen(site: Site, function: Function, statement: ast.If | None) -> Fix | None:
    """The fix for values: `if m.any(): x[m] = f(a[m])` as `x = torch.where(m, f(a), x)`."""
    if statement is None or len(statement.body) != 1 or statement.orelse:
        return None
    asked = seen(function, statement.test, *ASKED)
    if asked is None or not is_mask(function.fact(asked["m"])):
        return None
    draft = Draft(function)
    found = choice(site, function, statement.body[0], draft)
    if found is None or not function.same(found.mask, asked["m"]):
        return None
    draft.replace(statement, WHERE, x=found.x, m=found.chosen, value=found.value)
    fix = draft.fix("compute all, and choose, without asking", found.safety, found.changes)
    return replace(fix, adds=Adds.ROWS)
