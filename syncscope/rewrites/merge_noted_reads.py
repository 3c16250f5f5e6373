"""`a.append(x.item()); b.append(y.item())`: the numbers of such statements are read together before the first."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import joined, names_for, of_one_kind, tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

NOTES = {
    "append",
    "add_scalar",
    "log",
    "log_metric",
    "update",
    "set_postfix",
    "write",
}  # methods that keep or write down
EXAMPLES = (
    Example(
        """
        import torch

        def note(x: torch.Tensor, y: torch.Tensor, bar):
            error, size = (x - y).square(), x.abs()
            log = {"error": []}
            log["error"].append(error.mean().item())  # !
            log["worst"] = error.max().item()  # !
            bar.update("size", size.sum().item() / 2)  # !
            return log
        """,
        """
        import torch

        def note(x: torch.Tensor, y: torch.Tensor, bar):
            error, size = (x - y).square(), x.abs()
            log = {"error": []}
            mean_value, max_value, sum_value = torch.stack((error.mean(), error.max(), size.sum())).tolist()
            log["error"].append(mean_value)
            log["worst"] = max_value
            bar.update("size", sum_value / 2)
            return log
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]; bar: bar",
    ),
    Example(
        """
        import torch

        class Trainer:
            def __init__(self):
                self.metrics = {"loss": [], "size": []}

            def note(self, x: torch.Tensor, names: list[str]):
                self.metrics["loss"].append(x.square().mean().item())  # !
                self.metrics["size"].append(x.abs().mean().item())  # !
                names.append("both")
                return self.metrics
        """,
        """
        import torch

        class Trainer:
            def __init__(self):
                self.metrics = {"loss": [], "size": []}

            def note(self, x: torch.Tensor, names: list[str]):
                mean_value, mean_value_2 = torch.stack((x.square().mean(), x.abs().mean())).tolist()
                self.metrics["loss"].append(mean_value)
                self.metrics["size"].append(mean_value_2)
                names.append("both")
                return self.metrics
        """,
        Safety.UNSAFE,
    ),
)


class Note(NamedTuple):
    """A statement that notes one number."""

    statement: ast.stmt
    read: ast.Call
    tensor: ast.expr


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if statement is None or note(function, statement) is None:
        return None
    block = function.block(statement)
    first = last = block.index(statement)
    while first > 0 and note(function, block[first - 1]) is not None:
        first -= 1
    while last + 1 < len(block) and note(function, block[last + 1]) is not None:
        last += 1
    run = block[first : last + 1]
    return function.once("noted together", run[0], lambda: together(function, run))


def together(function: Function, run: list[ast.stmt]) -> Fix | None:
    """One read before a row of statements that each note a number."""
    notes = [n for s in run if (n := note(function, s)) is not None]
    join = joined([function.fact(n.tensor) for n in notes])
    if len({ast.unparse(n.tensor) for n in notes}) < 2 or join is None or not function.alone(notes[0].statement):
        return None
    kept = {ast.unparse(t) for n in notes[:-1] for t in targets(n.statement)}
    if any(ast.unparse(part) in kept for n in notes[1:] for part in ast.walk(n.tensor)):  # what is noted is asked again
        return None
    names = names_for(function, [n.tensor for n in notes])
    draft = Draft(function)
    stack = ", ".join(f"{{t{i}}}" for i in range(len(notes)))
    parts = {f"t{i}": n.tensor for i, n in enumerate(notes)}
    draft.insert_before(notes[0].statement, f"{', '.join(names)} = {join}(({stack})).tolist()", **parts)
    for n, name in zip(notes, names, strict=True):
        draft.replace(n.read, name)
    changes = f"all are read before one is noted; {of_one_kind(function, [n.read for n in notes])}"
    return draft.fix(f"read {len(notes)} numbers at once", Safety.UNSAFE, changes)


def note(function: Function, statement: ast.stmt) -> Note | None:
    """A statement as one that notes a number: `log.append(t.item())`, `log["loss"] = t.item()`."""
    return function.once("note", statement, lambda: as_note(function, statement))


def as_note(function: Function, statement: ast.stmt) -> Note | None:
    """The number that a statement notes, looked for anew; `note` looks once a statement."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method))) if method in NOTES:
            pass
        case ast.Assign(targets=entries) if all(isinstance(e, ast.Subscript) for e in entries):
            pass
        case _:
            return None
    sites = function.sites_in(statement)
    read = sites[0].node if len(sites) == 1 else None
    tensor = tensor_read(function, read)
    if tensor is None or not isinstance(read, ast.Call) or function.fact(tensor).confidence < 2:
        return None
    return Note(statement, read, tensor) if function.pure(tensor) and function.runs_first(statement, read) else None


def targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement writes to: the container and all that it is found by."""
    match statement:
        case ast.Assign(targets=entries):
            return [e.value for e in entries if isinstance(e, ast.Subscript)]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=container))):
            return [container]
    return []
