"""Hard examples, `x[m].topk(k)` with a k that was read from the device: all are sorted, and the first k are summed up."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.patterns.device_count import Count
from syncscope.codemod.patterns.positions import Rows, rows_of
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.use_mask_not_positions import Unrowed

TITLE = "sort all, and sum the first"
CHANGES = (
    "{k} is a tensor that stays on the device; all are sorted, and the sum may differ in its last bits; of equal ones at "
    "the cut others may be taken; a k larger than the number there is does not raise"
)
ADDS = Adds.ROWS
EXAMPLES = (
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            negative = label == 0
            count = min(int((label > 0).sum()) * 3, int(negative.sum()))  # !
            hard, _ = error.masked_fill(~negative, 0).topk(count)
            return hard.sum() / (count + 1)
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error, label = error.flatten(), label.flatten()
            negative = label == 0
            count = torch.minimum((label > 0).sum() * 3, negative.sum())
            hard = error.masked_fill(~negative, 0).sort(descending=True).values
            hard = torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0)
            return hard.sum() / (count + 1)
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            label = label.flatten()
            count = (label > 0).sum().item()  # !
            hard = error.flatten().sort(descending=True)[0][:count]
            return hard.mean()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            label = label.flatten()
            count = (label > 0).sum()
            hard = error.flatten().sort(descending=True).values
            hard = torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0)
            return hard.sum() / count
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error = torch.where(label > 0, error, error.sigmoid()).flatten()
            negative = error < 0.7
            count = negative.sum() // 2
            hard, _ = error[negative].topk(count)  # !
            return hard.sum()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            error = torch.where(label > 0, error, error.sigmoid()).flatten()
            negative = error < 0.7
            count = negative.sum() // 2
            hard = error.masked_fill(~negative, float("-inf")).flatten().sort(descending=True).values
            hard = torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0)
            return hard.sum()
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(scores: torch.Tensor, label: torch.LongTensor, weight: torch.Tensor, ratio: int):
            each = F.cross_entropy(scores, label.clamp(min=0), reduction="none") * weight
            positive = (label > 0).nonzero(as_tuple=False).reshape(-1)  # !
            negative = (label == 0).nonzero(as_tuple=False).view(-1)  # !
            wanted = ratio * positive.size(0)
            if wanted > negative.size(0):
                wanted = negative.size(0)
            hard, _ = each[negative].topk(wanted)
            easy = each[positive].sum()
            return easy + hard.sum()
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(scores: torch.Tensor, label: torch.LongTensor, weight: torch.Tensor, ratio: int):
            each = F.cross_entropy(scores, label.clamp(min=0), reduction="none") * weight
            positive_mask = label > 0
            negative_mask = label == 0
            wanted = ratio * positive_mask.sum()
            wanted = torch.minimum(wanted, negative_mask.sum())
            hard = each.masked_fill(~negative_mask, float("-inf")).flatten().sort(descending=True).values
            hard = torch.where(torch.arange(hard.shape[-1], device=hard.device) < wanted, hard, 0)
            easy = torch.where(positive_mask, each, 0).sum()
            return easy + hard.sum()
        """,
        Safety.SUGGEST,
        "scores: finite[n, 4]; label: label[n] < 4; weight: normal[n]; ratio: count",
        rule="nonzero",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor, most: int):
            error, label = error.flatten(), label.flatten()
            rows = torch.where(label > 0)[0]  # !
            count = max(len(rows) // 2, 1)
            if count > most:
                count = most
            hard = error.topk(count).values
            return hard.sum()
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor, most: int):
            error, label = error.flatten(), label.flatten()
            rows_mask = label > 0
            count = (rows_mask.sum() // 2).clamp(min=1)
            count = count.clamp(max=most)
            hard = error.sort(descending=True).values
            hard = torch.where(torch.arange(hard.shape[-1], device=hard.device) < count, hard, 0)
            return hard.sum()
        """,
        Safety.UNSAFE,
        "error: normal[n, m]; label: label[n, m]; most: count",
        rule="nonzero",
    ),
)


class Best(NamedTuple):
    """The k largest of a tensor, and their sum or mean."""

    node: ast.expr  # the topk call, or the sorted tensor that is cut
    taken: ast.expr  # that of which they are the largest
    k: ast.expr
    statement: ast.Assign
    name: ast.Name  # what the values are called
    total: ast.Call  # `name.sum()` or `name.mean()`
    mean: bool


def rewrite(site: Site, function: Function) -> Fix | None:
    code = function.file.code
    if not function.file.once("sorts", lambda: b"topk" in code or b"sort(" in code):
        return None
    found = function.once("largest", function.scope, lambda: [largest(function, n) for n in function.every(ast.Assign)])
    for best in filter(None, found):
        made = Count(function)
        if made.of(best.k) and site.node in concerned(function, best, made):
            return first_count(site, function, best, made)
    return None


def largest(function: Function, statement: ast.Assign) -> Best | None:
    """`v, _ = x.topk(k)`, `v = x.topk(k).values` or `v = x.sort(descending=True)[0][:k]`, where v is only summed up."""
    named = seen(
        function, statement, "{v:name}, {rest:name} = {best}", "{v:name} = {best}.values", "{v:name} = {best}[0]"
    )
    cut = seen(function, statement, "{v:name} = {best}.values[:{k}]", "{v:name} = {best}[0][:{k}]")
    if named is not None and "rest" in named and function.reads(function.file.text(named["rest"])):
        return None
    found = named or cut
    best = found["best"] if found is not None else None
    of = seen(function, best, "{x}.topk({k})") if cut is None else seen(function, best, "{x}.sort(descending=True)")
    if found is None or best is None or of is None:
        return None
    name = found["v"]
    assert isinstance(name, ast.Name)
    uses = [n for n in function.reads(name.id) if n.lineno > (statement.end_lineno or 0)]
    if function.binds(name.id)[-1] is not name or function.loop(statement) is not None or len(uses) != 1:
        return None
    mean = around(function, uses[0], "{it}.mean()")
    total = mean or around(function, uses[0], "{it}.sum()")
    if total is None or not isinstance(total.node, ast.Call):
        return None
    return Best(best, of["x"], {**found, **of}["k"], statement, name, total.node, mean is not None)


def concerned(function: Function, best: Best, made: Count) -> list[ast.AST]:
    """The nodes at which the host waits for the k largest."""
    rows = taken_by(function, best.taken)
    return [
        *made.reads,
        *(r.call for r in made.lengths.values()),
        *([rows.call] if rows else []),
        best.node,
        best.taken,
    ]


def taken_by(function: Function, taken: ast.expr) -> Rows | None:
    """The rows of `x[rows]`."""
    return rows_of(function, taken.slice) if isinstance(taken, ast.Subscript) else None


def first_count(site: Site, function: Function, best: Best, made: Count) -> Fix | None:
    """The fix: sort, and sum the first k."""
    taken, chosen = best.taken, taken_by(function, best.taken)
    mask = taken.slice if isinstance(taken, ast.Subscript) and is_mask(function.fact(taken.slice)) else None
    known = {id(n) for e in (best.k, *made.parts()) for n in ast.walk(e)}
    flat = mask is not None or chosen is not None or is_flat(function, taken)
    if why := _not_sorted_alike(function, best, flat) or _counted_elsewhere(function, best, made, known):
        return function.declines(site.node, why)
    draft = Draft(function)
    every = {r.name: r for r in (*made.lengths.values(), *([chosen] if chosen else []))}
    gone = Unrowed(function, draft, every, {*known, *(id(n) for n in ast.walk(taken))})
    if not gone.of_all():
        return function.declines(site.node, "the rows that are selected serve something else, too")
    made.written(draft, gone.masks)
    k = made.on_device(best.k, draft, gone.masks)
    base = taken.value if isinstance(taken, ast.Subscript) and (mask is not None or chosen is not None) else None
    if base is not None:
        draft.replace(
            best.statement,
            '{v} = {x}.masked_fill(~{m}, float("-inf")).flatten().sort(descending=True).values',
            v=best.name.id, x=base, m=gone.masks[chosen.name] if chosen is not None else mask or "",
        )  # fmt: skip
    else:
        draft.replace(best.statement, "{v} = {x}.sort(descending=True).values", v=best.name.id, x=taken)
    first = "{v} = torch.where(torch.arange({v}.shape[-1], device={v}.device) < {k}, {v}, 0)"
    draft.insert_after(best.statement, first, v=best.name.id, k=k)
    if best.mean:
        draft.replace(best.total, "{v}.sum() / {k}", v=best.name.id, k=k)
    if base is not None and chosen is not None:
        gone.selected.insert(0, base)
    unfit = "" if base is None or chosen is not None else other_shape(site, function, base, mask)
    unfit = unfit or gone.supposed()
    changes = CHANGES.format(k=function.file.text(best.k))
    if unfit:
        return draft.fix(TITLE, Safety.SUGGEST, f"{unfit}; {changes}")
    return draft.fix(TITLE, Safety.UNSAFE, changes)


def is_flat(function: Function, taken: ast.expr) -> bool:
    """Whether what is sorted surely has one dimension."""
    op = function.op(taken)
    laid_out = op is not None and (op.name == "flatten" or (op.name in ("view", "reshape") and len(op.args) == 1))
    return laid_out or function.fact(taken).ndim == 1


def other_shape(site: Site, function: Function, base: ast.expr, mask: ast.expr | None) -> str:
    """What must be so where a mask may have another shape than what it selects from; "" where it has the same."""
    if mask is None or same_rank(site, function, mask, base):
        return ""
    return f"{function.file.text(base)} must have the shape of {function.file.text(mask)}"


def _not_sorted_alike(function: Function, best: Best, flat: bool) -> str:
    """Why the first of all that is sorted may be others than the k largest; "" where they are the same."""
    if best.mean and not flat:
        return f"{function.file.quote(best.taken)} may have several dimensions, and its mean is of all"
    if not function.pure(best.taken):
        return f"{function.file.quote(best.taken)} cannot be computed at another place"
    if function.fact(best.taken).dtype not in (Dtype.FLOAT, Dtype.UNKNOWN):
        return f"{function.file.quote(best.taken)} holds no floats"
    return ""


def _counted_elsewhere(function: Function, best: Best, made: Count, known: set[int]) -> str:
    """Why the number of them cannot be computed on the device where it is needed; "" where it can."""
    names = [n.id for n in ast.walk(best.k) if isinstance(n, ast.Name)]
    changed = next((name for name in names if disturbed(function, name, best.statement, best.total)), None)
    if changed is not None:
        return f"`{changed}` may change before they are added up"
    computed = isinstance(best.k, (ast.Name, ast.Call, ast.BinOp, ast.Subscript))
    return "" if computed and made.spread(known) else f"{function.file.quote(best.k)} serves something else, too"
