"""`len(nonzero(m))`, `nonzero(m).shape[0]` as `m.count_nonzero()`, and `len(x.unique())`, counted among the sorted values."""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.lengths import COUNTED, length, number_of_elements
from syncscope.codemod.patterns.positions import lookup
from syncscope.codemod.patterns.reads import handed_on, needs_number
from syncscope.codemod.writes import sole_use
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety, Way
from syncscope.model.ops import Op

SELECTS_APART = True
WAY = Way.ADDS_UP
EXAMPLES = (
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            found = len(torch.nonzero(scores > 0))  # !
            return scores.sum() / found
        """,
        """
        import torch

        def forward(scores: torch.Tensor):
            found = (scores > 0).count_nonzero()
            return scores.sum() / found
        """,
        Safety.UNSAFE,
        "scores: float[n, m]",
        rule="nonzero",
    ),
    Example(
        """
        import torch

        def right(best: torch.Tensor, label: torch.Tensor):
            return (best == label).nonzero().numel() / len(label)  # !
        """,
        """
        import torch

        def right(best: torch.Tensor, label: torch.Tensor):
            return (best == label).count_nonzero() / len(label)
        """,
        Safety.SUGGEST,
        "best: label[n + 1] < 3; label: label[n + 1] < 3",
        rule="nonzero",
    ),
    Example(
        """
        import torch

        def loss(target: torch.LongTensor):
            labels = torch.unique(target).numel()  # !
            return labels
        """,
        """
        import torch

        def loss(target: torch.LongTensor):
            labels = target.flatten().sort().values.diff().count_nonzero() + 1
            return labels
        """,
        Safety.UNSAFE,
        "target: label[n + 1, h + 1]",
        rule="unique",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            return x.sum() / len(torch.unique(x))  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            ordered = x.flatten().sort().values
            return x.sum() / ((ordered[1:] != ordered[:-1]).count_nonzero() + 1)
        """,
        Safety.UNSAFE,
        "x: float[n + 1, h + 1]",
        rule="unique",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            values = torch.unique(x)  # !
            half = x / 2
            return half.sum() / len(values)
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            half = x / 2
            ordered = x.flatten().sort().values
            return half.sum() / ((ordered[1:] != ordered[:-1]).count_nonzero() + 1)
        """,
        Safety.UNSAFE,
        "x: float[n + 1, h + 1]",
        rule="unique",
    ),
    Example(
        """
        import torch

        def check(users: torch.LongTensor):
            if len(torch.unique(users)) != len(users):  # !
                raise ValueError("a user stands there twice")
        """,
        rule="unique",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    return distinct(site, function) if site.op in (Op.UNIQUE, Op.UNIQUE_CONSECUTIVE) else positions(site, function)


def positions(site: Site, function: Function) -> Fix | None:
    """How many positions are looked for."""
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    rows: ast.expr = call
    if tupled:
        parent = function.parent(call)
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
            return None
        rows = parent
    rows, definition = sole_use(function, rows)
    ndim = site.fact_of(op.base).ndim
    factor = 1 if tupled else ndim
    count = length(function, rows) or number_of_elements(function, rows)
    if count is None or ndim == 0 or (tupled and ndim is None):
        return None
    if needs_number(function, count) or handed_on(function, count):
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    elements = number_of_elements(function, rows) is count
    if elements and factor not in (1, None):
        draft.replace(count, f"{{m}}.count_nonzero() * {factor}", m=op.base)
    else:
        draft.replace(count, "{m}.count_nonzero()", m=op.base)
    if elements and factor is None:
        one = f"{function.file.text(op.base)} must have one dimension"
        return draft.fix("count on the device", Safety.SUGGEST, one, COUNTED)
    fix = draft.fix("count on the device", Safety.UNSAFE, COUNTED)
    return replace(fix, hint=True) if decides(function, count) else fix  # then the host waits for the count


def decides(function: Function, node: ast.expr) -> bool:
    """Whether a value says which way the code goes."""
    at: ast.AST | None = node
    while isinstance(above := function.parent(at) if at is not None else None, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        at = above
    return isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)) and above.test is at


def distinct(site: Site, function: Function) -> Fix | None:
    """How many different values there are: sorted, those that differ from the one before."""
    op = function.op(site.node)
    if op is None or op.args or op.keywords.keys() - {"sorted"} or not isinstance(site.node, ast.Call):
        return None
    used, definition = sole_use(function, site.node)
    count = number_of_elements(function, used) or length(function, used)
    statement = function.statement(used)
    if count is None or statement is None or needs_number(function, count) or handed_on(function, count):
        return None
    fact = site.fact_of(op.base)
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    flat = "{x}" if site.fact_of(op.base).ndim == 1 or is_flat(function, op.base) else "{x}.flatten()"
    values = f"{flat}.sort().values" if site.op is Op.UNIQUE else flat
    if fact.dtype in (Dtype.INT, Dtype.BOOL):
        draft.replace(count, f"{values}.diff().count_nonzero() + 1", x=op.base)
    elif function.runs_first(statement, count) and function.pure(op.base):
        ordered = function.fresh("ordered")
        draft.insert_before(statement, f"{ordered} = {values}", x=op.base)
        draft.replace(count, f"({ordered}[1:] != {ordered}[:-1]).count_nonzero() + 1")
    else:
        return None
    return draft.fix(
        "sort, and count where neighbours differ",
        Safety.UNSAFE,
        "the count is a 0-d tensor that stays on the device, no Python int, and an empty tensor counts as one value",
    )


def is_flat(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is written as one of one dimension: `x.flatten()`."""
    return seen(function, tensor, "{x}.flatten()", "{x}.ravel()", "{x}.view(-1)", "{x}.reshape(-1)") is not None
