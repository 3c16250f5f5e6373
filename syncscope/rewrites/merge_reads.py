"""`a = x.item(); b = y.item()` as `a, b = torch.stack((x, y)).tolist()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import alike, joined, of_one_kind, reads_of
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
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign):
        return None
    pairs = reads_of(function, statement)
    if not pairs:
        return None
    run = [statement]
    if isinstance(statement.targets[0], ast.Name):
        block = function.block(statement)
        at = block.index(statement)
        first = last = at
        while first > 0 and reads_of(function, block[first - 1]):
            first -= 1
        while last + 1 < len(block) and reads_of(function, block[last + 1]):
            last += 1
        run = [s for s in block[first : last + 1] if isinstance(s, ast.Assign)]
        if any(isinstance(s.targets[0], ast.Tuple) for s in run):
            return None
        pairs = [pair for s in run for pair in reads_of(function, s)]
    return function.once("merged", run[0], lambda: merged_run(function, run, pairs))


def merged_run(function: Function, run: list[ast.Assign], pairs: list[tuple[ast.Name, ast.expr]]) -> Fix | None:
    """One read in place of statements in a row that only read."""
    names, tensors = [n for n, _ in pairs], [t for _, t in pairs]
    if len(pairs) < 2 or len({n.id for n in names}) < len(names):
        return None
    if any(isinstance(n, ast.Name) and n.id in {x.id for x in names} for t in tensors for n in ast.walk(t)):
        return None
    facts = [function.fact(t) for t in tensors]
    join = joined(facts)
    if join is None or not all(function.alone(s) for s in run):
        return None
    draft = Draft(function)
    parts = {f"t{i}": t for i, t in enumerate(tensors)}
    stack = ", ".join(f"{{{key}}}" for key in parts)
    draft.replace(run[0], f"{', '.join(n.id for n in names)} = {join}(({stack})).tolist()", **parts)
    for other in run[1:]:
        draft.remove(other)
    reads, title = [read for s in run for read in each_of(s.value)], f"read {len(names)} numbers at once"
    if alike(function, reads):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, of_one_kind(function, reads))
