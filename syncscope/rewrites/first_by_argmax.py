"""`nonzero(m)[0]`, perhaps by a name, as `m.int().argmax()`: a mask has its largest value first where it is first true."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.positions import lookup, positions, truths
from syncscope.codemod.writes import sole_use
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import each_of

SELECTS_APART = True
EXAMPLES = (
    Example(
        """
        import torch

        def start(x: torch.Tensor, steps: torch.Tensor):
            x = x.flatten()
            at = (x > 0).nonzero(as_tuple=True)[0][0]  # !
            row = torch.nonzero(x < 0)[0]  # !
            return at, row, torch.where(x == x.max())[0][0].item()  # !
        """,
        """
        import torch

        def start(x: torch.Tensor, steps: torch.Tensor):
            x = x.flatten()
            at = (x > 0).int().argmax()
            row = (x < 0).int().argmax().view(1)
            return at, row, (x == x.max()).int().argmax().item()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]; steps: finite[n]",
    ),
    Example(
        """
        import torch

        def first(x: torch.Tensor, value: float):
            found = (x == value).nonzero()  # !
            return found[0]
        """,
        """
        import torch

        def first(x: torch.Tensor, value: float):
            return (x == value).int().argmax().view(1)
        """,
        Safety.SUGGEST,
        "x: finite[n]; value: number",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    if op.args or op.keywords.keys() - {"as_tuple"} or not truths(function, op.base):
        return None
    row = positions(function, call, tupled)
    if tupled and row is None:
        return None
    used, definition = sole_use(function, row or call)
    at = function.parent(used)
    if not isinstance(at, ast.Subscript) or at.value is not used or not isinstance(at.ctx, ast.Load):
        return None
    place = [function.constant(e) for e in each_of(at.slice)]
    outer = function.parent(at)
    if row is None and place == [0] and isinstance(outer, ast.Subscript) and outer.value is at:  # nonzero(m)[0][0]
        place.append(function.constant(outer.slice))
        at = outer
    if set(place) != {0} or len(place) > (1 if row is not None else 2) or not isinstance(at.ctx, ast.Load):
        return None
    if caught(function, at):
        return None
    whole = row is None and len(place) == 1 and not read(function, at)  # a row of one element
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    draft.replace(at, "{m}.int().argmax().view(1)" if whole else "{m}.int().argmax()", m=op.base)
    changes = "where nothing is true it is 0 instead of raising"
    if site.fact_of(op.base).ndim == 1:
        return draft.fix("find the first with argmax", Safety.UNSAFE, changes)
    one = f"{function.file.text(op.base)} must have one dimension"
    return draft.fix("find the first with argmax", Safety.SUGGEST, one, changes)


def read(function: Function, node: ast.expr) -> bool:
    """Whether a tensor is read at once, for which its dimensions do not matter."""
    outer = function.parent(node)
    return isinstance(outer, ast.Attribute) and outer.attr == "item"
