"""`goal[m, label[m]] = number` as `goal.masked_fill_(...)` where the column is the row's label. The site is either.

It waits for code like torchvision's `fcos.py`: the goals of the anchors that have a class.
"""

from __future__ import annotations

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal[found, label[found]] = 1.0  # !
            return goal
        """,
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal.masked_fill_(found[..., None] & (label[..., None] == torch.arange(goal.shape[-1], device=goal.device)), 1.0)
            return goal
        """,
        Safety.UNSAFE,
        "scores: finite[n, 4]; label: label[n] < 4",
        rule="boolean-mask-read",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    assign = function.statement(site.node)
    found = seen(function, assign, "{x}[{m}, {c}[{m}]] = {v}")
    if found is None or assign is None or function.constant(found["v"]) is None:
        return None
    mask, column = found["m"], found["c"]
    if not is_mask(site.fact_of(mask)) or not same_rank(site, function, mask, column):
        return None
    if not all(function.pure(n) for n in (mask, column, found["x"])) or caught(function, assign):
        return None
    draft = Draft(function)
    at, last = ("[:, None]", 1) if site.fact_of(mask).ndim == 1 else ("[..., None]", -1)
    draft.replace(
        assign,
        f"{{x}}.masked_fill_({{m}}{at} & ({{c}}{at} == torch.arange({{x}}.shape[{last}], device={{x}}.device)), {{v}})",
        **{**found, "x": draft.named(found["x"], "filled")},
    )
    return draft.fix(
        "fill where the column is the row's own",
        Safety.UNSAFE,
        "a column that is out of range is left out instead of raising, and a negative one does not count from the end; "
        "the work is that of all columns",
    )
