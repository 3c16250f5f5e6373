"""The mean of the losses above a threshold, or of the k largest where those are few, over all of them, sorted.

It is the loss of online hard example mining, as BiSeNet and many after it write it: of both sets of sorted losses the larger
one holds the other, so that what either keeps is what counts.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import Parts, alike, around, seen
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.ROWS
ABOVE = ("{h:name} = {x:name}[{x} > {t}]", "{h:name} = {x:name}[{x} >= {t}]")
FEW = tuple(
    f"if {size} < {{k}}:\n    {largest}"
    for size in ("{h}.numel()", "{h}.nelement()", "len({h})", "{h}.shape[0]", "{h}.size(0)")
    for largest in ("{h}, {r:name} = {x}.topk({k})", "{h} = {x}.topk({k}).values", "{h} = {x}.topk({k})[0]")
)
CUT = "if {x:name}[{k}] > {t}:\n    {x} = {x}[{x} > {t}]\nelse:\n    {x} = {x}[:{k}]"
SORTED = ("{x:name}, {r:name} = {y}.sort(descending=True)", "{x:name} = {y}.sort(descending=True)[0]")
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, threshold: float, least: int):
            each = F.cross_entropy(logits, target, reduction="none").view(-1)
            hard = each[each > threshold]  # !
            if hard.numel() < least:
                hard, _ = each.topk(least)
            return hard.mean()
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, threshold: float, least: int):
            each = F.cross_entropy(logits, target, reduction="none").view(-1)
            hard = each.sort(descending=True).values
            kept = (hard > threshold) | (torch.arange(hard.numel(), device=hard.device) < least)
            return torch.where(kept, hard, 0.0).sum() / kept.sum()
        """,
        Safety.UNSAFE,
        "logits: finite[7, 4]; target: index[7] < 4; threshold: number; least: count",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, threshold: float, least: int):
            each = F.cross_entropy(logits, target, reduction="none").view(-1)
            each, _ = torch.sort(each, descending=True)
            if each[least] > threshold:  # !
                each = each[each > threshold]
            else:
                each = each[:least]
            return torch.mean(each)
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, threshold: float, least: int):
            each = F.cross_entropy(logits, target, reduction="none").view(-1)
            each, _ = torch.sort(each, descending=True)
            kept = (each > threshold) | (torch.arange(each.numel(), device=each.device) < least)
            return torch.where(kept, each, 0.0).sum() / kept.sum()
        """,
        Safety.UNSAFE,
        "logits: finite[7, 4]; target: index[7] < 4; threshold: number; least: count",
        rule="tensor-in-condition",
    ),
)
KEPT = "({h} {more} {t}) | (torch.arange({h}.numel(), device={h}.device) < {k})"


class Hardest(NamedTuple):
    """The statements that keep the hardest, and the mean of what they keep."""

    first: ast.stmt
    rest: list[ast.stmt]  # which take their place
    parts: Parts  # h: what is kept; x: of what; t: the threshold; k: how many at least
    more: str  # `>`, or `>=`
    mean: ast.expr


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if isinstance(statement, ast.Assign) and isinstance(function.parent(statement), ast.If):
        outer = function.parent(statement)
        statement = outer if isinstance(outer, ast.If) and seen(function, outer, CUT) is not None else statement
    return (
        function.once("hardest", statement, lambda: of_statement(function, statement))
        if statement is not None
        else None
    )


def of_statement(function: Function, statement: ast.stmt) -> Fix | None:
    """The fix for the statement at which the host waits."""
    found = above_or_largest(function, statement) or cut_where_sorted(function, statement)
    if found is None or not all(map(function.pure, (found.parts["t"], found.parts["k"]))):
        return None
    draft, text = Draft(function), function.file.text
    held, of = found.parts["h"], found.parts["x"]
    kept = function.fresh("kept")
    if found.rest:
        draft.replace(found.first, "{h} = {x}.sort(descending=True).values", h=text(held), x=of)
    last = found.rest[-1] if found.rest else found.first
    draft.replace(
        last, f"{kept} = {KEPT.replace('{more}', found.more)}", h=text(held), t=found.parts["t"], k=found.parts["k"]
    )
    draft.replace(found.mean, f"torch.where({kept}, {{h}}, 0.0).sum() / {kept}.sum()", h=text(held))
    k = text(found.parts["k"])
    changes = (
        "the mean may differ in its last bits, overflows in half precision where the sum of what is kept does, and is NaN "
        f"where any element is; fewer elements than {k} no longer raise an error"
    )
    if not flat(function, of):
        changes = f"{text(of)} must have one dimension; {changes}"
    return draft.fix("keep the hardest by a mask", Safety.UNSAFE, changes)


def above_or_largest(function: Function, statement: ast.stmt) -> Hardest | None:
    """`h = x[x > t]`, `if h.numel() < k: h, _ = x.topk(k)`, and its mean."""
    above = seen(function, statement, *ABOVE)
    block = function.block(statement)
    if above is None or statement not in block or block[-1] is statement or not isinstance(statement, ast.Assign):
        return None
    asked = block[block.index(statement) + 1]
    few = seen(function, asked, *FEW)
    if few is None or not all(alike(few[name], above[name]) for name in ("h", "x")):
        return None
    mean = only_mean(function, above["h"], asked)
    if mean is None or ("r" in few and function.reads(function.file.text(few["r"]))):
        return None
    assert isinstance(statement.value, ast.Subscript)
    assert isinstance(statement.value.slice, ast.Compare)
    more = ">=" if isinstance(statement.value.slice.ops[0], ast.GtE) else ">"
    return Hardest(statement, [asked], above | {"k": few["k"]}, more, mean)


def cut_where_sorted(function: Function, statement: ast.stmt) -> Hardest | None:
    """`if x[k] > t: x = x[x > t]`, `else: x = x[:k]` of a sorted x, and its mean."""
    cut = seen(function, statement, CUT)
    block = function.block(statement)
    if cut is None or statement not in block:
        return None
    name = function.file.text(cut["x"])
    before = [s for s in block[: block.index(statement)] if any(n in ast.walk(s) for n in function.binds(name))]
    in_order = seen(function, before[-1], *SORTED) if before else None
    mean = only_mean(function, cut["x"], statement)
    if in_order is None or mean is None or not alike(in_order["x"], cut["x"]):
        return None
    return Hardest(statement, [], cut | {"h": cut["x"]}, ">", mean)


def only_mean(function: Function, name: ast.expr, after: ast.stmt) -> ast.expr | None:
    """The mean of what a name holds after a statement, where nothing else is done with it."""
    end = function.file.span(after).end
    uses = [n for n in function.names(function.file.text(name)) if function.file.span(n).start >= end]
    if len(uses) != 1 or function.loop(after) is not function.loop(uses[0]):
        return None
    found = around(function, uses[0], "{it}.mean()")
    return found.node if found is not None else None


def flat(function: Function, of: ast.expr) -> bool:
    """Whether a tensor surely has one dimension."""
    op = function.op(function.value(of))
    known = op is not None and (op.name == "flatten" or (op.name in ("view", "reshape") and len(op.args) == 1))
    return function.fact(of).ndim == 1 or (known and not (op is not None and op.name == "flatten" and op.args))
