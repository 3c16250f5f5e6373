"""`if m.any(): x[m] = f(a[m])` as `x = torch.where(m, f(a), x)`: where nothing is masked, that is x."""

from __future__ import annotations

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import decided_by
from syncscope.codemod.proofs import is_mask
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.choose_with_where import WHERE, choice
from syncscope.rewrites.write_without_asking import ASKED

COMPILES = True
ADDS = Adds.ROWS
CLEARS = True
EXAMPLES = (
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
    return draft.fix("compute all, and choose, without asking", found.safety, found.changes)
