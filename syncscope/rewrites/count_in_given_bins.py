"""`x.bincount(minlength=n)` as ones that are added up in n bins."""

from __future__ import annotations

import ast
from math import prod

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Drawback, Fix, Safety
from syncscope.project.syntax import each_of

# values, from which on bincount is faster: it counts within a block first, and index_add_ adds each by itself
MANY = 2**20

LONG = True
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

        def forward(label: torch.LongTensor, offset: torch.LongTensor):
            return torch.bincount((label + offset).clamp(max=5), minlength=6)  # !
        """,
        """
        import torch

        def forward(label: torch.LongTensor, offset: torch.LongTensor):
            values = (label + offset).clamp(max=5)
            return torch.zeros(6, dtype=torch.long, device=values.device).index_add_(0, values, torch.ones_like(values))
        """,
        Safety.UNSAFE,
        "label: index[n] < 6; offset: index[n] < 3",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr):
        return None
    size = op.argument(1, "minlength")
    if size is None:
        return function.declines(site.node, "no minlength says how many bins there are")
    if op.argument(0, "weights") is not None:
        return function.declines(site.node, "what it adds up are weights, of a dtype of their own")
    if site.fact_of(op.base).dtype not in (Dtype.INT, Dtype.UNKNOWN):  # it takes whole numbers alone
        return function.declines(site.node, f"{function.file.quote(op.base)} does not hold whole numbers")
    if not function.pure(op.base) or not function.pure(size):
        return function.declines(site.node, "what it is given cannot be computed twice")
    if _many(function, op.base):
        return function.declines(site.node, "it counts so many values that adding them one by one takes longer")
    draft = Draft(function)
    values = draft.named(op.base, "values")
    converted = seen(function, op.base, "{x}.long()", "{x}.to(torch.long)")
    of = converted["x"] if converted is not None and values is op.base else values
    draft.replace(
        site.node,
        "torch.zeros({n}, dtype=torch.long, device={of}.device).index_add_(0, {x}, torch.ones_like({x}))",
        n=size,
        x=values,
        of=of,
    )
    draft.drawbacks.add(Drawback.READS_WORSE)
    return draft.fix(
        "count in as many bins as were asked for",
        Safety.UNSAFE,
        "a value as large as minlength is no further bin but an assertion on the device, after which CUDA can only be started "
        "anew",
        "values must be int64",
        "for few values: from about a million on it takes several times as long as bincount",
    )


def _many(function: Function, values: ast.expr) -> bool:
    """Whether values are known to be so many that ones which are added up one by one cost more than the wait."""
    made = function.value(values)
    if not isinstance(made, ast.Call):
        return False
    size = next((k.value for k in made.keywords if k.arg == "size"), made.args[-1] if made.args else None)
    numbers = [function.constant(each) for each in each_of(size)] if size is not None else []
    counts = [each for each in numbers if isinstance(each, int)]
    return len(counts) == len(numbers) and prod(counts) >= MANY
