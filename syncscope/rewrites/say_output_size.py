"""`x.repeat_interleave(n)` with the `output_size` that the code around knows."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            repeats = torch.tensor([1, 0, 3], device=x.device)
            return x.repeat_interleave(repeats, dim=0)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            repeats = torch.tensor([1, 0, 3], device=x.device)
            return x.repeat_interleave(repeats, dim=0, output_size=4)
        """,
        Safety.SAFE,
        "x: float[3, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, lengths: list[int]):
            repeats = torch.tensor(lengths, device=x.device)
            return torch.repeat_interleave(x, repeats, dim=0)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, lengths: list[int]):
            repeats = torch.tensor(lengths, device=x.device)
            return torch.repeat_interleave(x, repeats, dim=0, output_size=sum(lengths))
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; lengths: counts[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, counts: list[int]):
            repeats = torch.tensor(counts, dtype=torch.long, device=x.device).relu()
            tokens = x.new_ones((sum(counts), 1))
            return tokens * 2 - x.repeat_interleave(repeats, dim=0)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, counts: list[int]):
            repeats = torch.tensor(counts, dtype=torch.long, device=x.device).relu()
            tokens = x.new_ones((sum(counts), 1))
            return tokens * 2 - x.repeat_interleave(repeats, dim=0, output_size=tokens.shape[0])
        """,
        Safety.UNSAFE,
        "x: finite[n, m + 1]; counts: counts[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    repeats = op.argument(0, "repeats") if op is not None else None
    if op is None or repeats is None or not isinstance(site.node, ast.Call) or "output_size" in op.keywords:
        return None
    if op.argument(1, "dim") is None and site.fact_of(op.base).ndim != 1:
        return None
    title, draft = "say how long the result is", Draft(function)
    if (rows := rows_beside(function, site.node)) is not None and op.argument(1, "dim") is not None:
        draft.replace(site.node, "{call}", call=draft.call(site.node, {}, output_size=f"{rows.id}.shape[0]"))
        return draft.fix(title, Safety.UNSAFE, f"{rows.id} must have a row for each repeat")
    made = function.value(repeats)
    given = seen(function, made, "torch.tensor({counts}, *_, **_)", "torch.as_tensor({counts}, *_, **_)")
    if given is None or (isinstance(repeats, ast.Name) and disturbed(function, repeats.id, made, site.node)):
        return None
    counts = given["counts"]
    numbers = [function.constant(e) for e in counts.elts] if isinstance(counts, (ast.List, ast.Tuple)) else []
    whole = [n for n in numbers if isinstance(n, int)]
    if len(whole) == len(numbers) >= 2 and min(whole) >= 0:
        draft.replace(site.node, "{call}", call=draft.call(site.node, {}, output_size=str(sum(whole))))
        return draft.fix(title, Safety.SAFE)
    if isinstance(counts, ast.ListComp) and counts is not repeats and made is repeats:
        inner = draft.node(counts)
        draft.replace(site.node, "{call}", call=draft.call(site.node, {}, output_size=draft.part("sum({c})", c=inner)))
        return draft.fix(
            title, Safety.UNSAFE, "the counts must be Python ints, one for each element", "they are counted twice"
        )
    if not isinstance(counts, ast.Name) or site.fact_of(counts).is_tensor or touched(function, counts, site.node):
        return None
    draft.replace(site.node, "{call}", call=draft.call(site.node, {}, output_size=f"sum({counts.id})"))
    return draft.fix(title, Safety.UNSAFE, f"{counts.id} must be a list of ints, one for each element")


def rows_beside(function: Function, call: ast.Call) -> ast.Name | None:
    """A tensor that is combined with the repeats row by row: h in `h + x.repeat_interleave(n, dim=0)`."""
    op, outer = function.op(call), function.parent(call)
    along = op.argument(1, "dim") if op is not None else None
    if not isinstance(outer, ast.BinOp) or isinstance(outer.op, ast.MatMult) or along is None:
        return None
    other = outer.left if outer.right is call else outer.right
    while isinstance(other, ast.BinOp) and not isinstance(other.op, ast.MatMult):  # tokens * 2
        other = other.left if function.constant(other.right) is not None else other.right
    known = isinstance(other, ast.Name) and function.fact(other).is_tensor and function.fact(other).confidence >= 2
    return other if known and function.constant(along) == 0 and isinstance(other, ast.Name) else None


def touched(function: Function, name: ast.Name, end: ast.Call) -> bool:
    """Whether a list is used at all between two nodes: it may be written then."""
    first, last = function.file.span(name).end, function.file.span(end).start
    return any(first <= function.file.span(n).start < last for n in function.names(name.id))
