"""`if m.any(): x[m] = number` without asking: where nothing is masked, nothing is written."""

from __future__ import annotations

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import decided_by
from syncscope.codemod.proofs import is_mask, one_value
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

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
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = decided_by(site, function)
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
