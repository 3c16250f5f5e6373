"""`a = x.item(); b = y.item()` as `a, b = torch.stack((x, y)).tolist()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import joined
from syncscope.codemod.patterns.reads import by_int, reads_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.tensors.syntax import each_of

EXAMPLES = (
    Example(
        """
        import torch

        def extremes(x: torch.Tensor):
            low = x.min().item()  # !
            high = x.max().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            low, high = torch.stack((x.min(), x.max())).tolist()
            return low, high
        """,
        Safety.SAFE,
        "x: int[...]",
    ),
    Example(
        """
        import torch

        def corner(boxes: torch.Tensor, i: int):
            left, top = int(boxes[i, 0]), int(boxes[i, 1])  # !
            return left, top
        """,
        """
        import torch

        def corner(boxes: torch.Tensor, i: int):
            left, top = map(int, boxes[i, :2].tolist())
            return left, top
        """,
        Safety.UNSAFE,
        "boxes: finite[n + 2, 4]; i: count",
    ),
    Example(
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = x.mean().item(), y.mean().item()  # !
            return low, high
        """,
        """
        import torch

        def extremes(x: torch.Tensor):
            x, y = x.exp(), x.cos()
            low, high = torch.stack((x.mean(), y.mean())).tolist()
            return low, high
        """,
        Safety.SUGGEST,
        "x: float[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign):
        return None
    pairs = reads_of(function, statement, whole=True)
    if not pairs:
        return None
    run = [statement]
    if isinstance(statement.targets[0], ast.Name):
        block = function.block(statement)
        at = block.index(statement)
        first = last = at
        while first > 0 and reads_of(function, block[first - 1], whole=True):
            first -= 1
        while last + 1 < len(block) and reads_of(function, block[last + 1], whole=True):
            last += 1
        run = [s for s in block[first : last + 1] if isinstance(s, ast.Assign)]
        if any(isinstance(s.targets[0], ast.Tuple) for s in run):
            return None
        pairs = [pair for s in run for pair in reads_of(function, s, whole=True)]
    return function.once("merged", run[0], lambda: merged_run(function, run, pairs))


def merged_run(function: Function, run: list[ast.Assign], pairs: list[tuple[ast.Name, ast.expr]]) -> Fix | None:
    """One read in place of statements in a row that only read."""
    names, tensors = [n for n, _ in pairs], [t for _, t in pairs]
    if len(pairs) < 2 or len({n.id for n in names}) < len(names):
        return None
    if any(isinstance(n, ast.Name) and n.id in {x.id for x in names} for t in tensors for n in ast.walk(t)):
        return None
    if len({ast.unparse(t) for t in tensors}) < len(tensors) or not all(function.alone(s) for s in run):
        return None
    reads = [read for s in run for read in each_of(s.value)]
    reading, whole = joined(function, reads), [by_int(function, read) for read in reads]
    if reading is None or any(whole) != all(whole):
        return None
    draft = Draft(function)
    code = f"map(int, {reading.code})" if all(whole) else reading.code
    draft.replace(run[0], f"{', '.join(n.id for n in names)} = {code}", **reading.parts)
    for other in run[1:]:
        draft.remove(other)
    return draft.fix(f"read {len(names)} numbers at once", reading.safety, reading.changes)
