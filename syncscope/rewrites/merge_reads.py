"""`a = x.item(); b = y.item()` as `a, b = torch.stack((x, y)).tolist()`."""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import joined
from syncscope.codemod.patterns.reads import by_int, reads_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.project.syntax import each_of

STAYS = Stays.LAST
WAY = Way.JOINS

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
    known = function.once("rows of reads", function.scope, dict[int, RowOfReads])
    if id(statement) not in known:
        known |= rows_around(function, statement)
    row = known.get(id(statement))
    if row is None or not row.statements:
        return None
    run, pairs = row
    return function.once("merged", run[0], lambda: merged_run(function, run, pairs))


class RowOfReads(NamedTuple):
    """Statements in a row that only read, with the names and tensors of all of them."""

    statements: list[ast.Assign]
    pairs: list[tuple[ast.Name, ast.expr]]


def rows_around(function: Function, statement: ast.Assign) -> dict[int, RowOfReads]:
    """The row of a statement, for each of it, by its `id`; one that reads several numbers stands alone, and spoils others."""
    pairs = reads_of(function, statement, whole=True)
    if not pairs or not isinstance(statement.targets[0], ast.Name):
        return {id(statement): RowOfReads([statement], pairs)} if pairs else {}
    block = function.block(statement)
    at = block.index(statement)
    before = takewhile(lambda each: each[1], ((s, reads_of(function, s, whole=True)) for s in reversed(block[:at])))
    after = takewhile(lambda each: each[1], ((s, reads_of(function, s, whole=True)) for s in block[at + 1 :]))
    every = [*reversed([*before]), (statement, pairs), *after]
    run = [s for s, _ in every if isinstance(s, ast.Assign)]
    if any(isinstance(s.targets[0], ast.Tuple) for s in run):
        return {id(s): RowOfReads([], []) for s in run if isinstance(s.targets[0], ast.Name)}
    row = RowOfReads(run, [pair for _, each in every for pair in each])
    return {id(s): row for s in run}


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
    draft.dense |= reading.dense_in(draft)
    for other in run[1:]:
        draft.remove(other)
    return draft.fix(f"read {len(names)} numbers at once", reading.safety, *reading.changes)
