"""`a.append(x.item()); b.append(y.item())`: the numbers of such statements are read together before the first."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import joined, names_for, once_each, put_before
from syncscope.codemod.patterns.lightning_logs import surely_tells_lightning
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.project.syntax import text_of

STAYS = Stays.LAST
WAY = Way.JOINS

# methods that keep or write down
NOTES = {"append", "add_scalar", "log", "log_metric", "update", "set_postfix", "write"}
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
            error_value, worst_value, size_value = torch.stack((error.mean(), error.max(), size.sum())).tolist()
            log["error"].append(error_value)
            log["worst"] = worst_value
            bar.update("size", size_value / 2)
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
                loss_value, size_value = torch.stack((x.square().mean(), x.abs().mean())).tolist()
                self.metrics["loss"].append(loss_value)
                self.metrics["size"].append(size_value)
                names.append("both")
                return self.metrics
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Agent:
            def update(self, values: torch.Tensor, uid: int):
                self.track("Q-network / Q1 (max)", values.max().item())  # !
                self.track(f"Q-network / Q1 (min) of {uid}", values.min().item())  # !
        """,
        """
        import torch

        class Agent:
            def update(self, values: torch.Tensor, uid: int):
                q1_max_value, q1_min_of_value = torch.stack((values.max(), values.min())).tolist()
                self.track("Q-network / Q1 (max)", q1_max_value)
                self.track(f"Q-network / Q1 (min) of {uid}", q1_min_of_value)
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
    once = once_each(function, [n.read for n in notes])
    reading = joined(function, once) if len(once) > 1 else None
    if reading is None or not function.alone(notes[0].statement):
        return None
    if all(isinstance(s, ast.Expr) and surely_tells_lightning(s.value) for s in run):  # it takes the tensors themselves
        return None
    if not any(function.fact(n.tensor).confidence >= 2 for n in notes):  # what is read beside a tensor is one, too
        return None
    kept = {ast.unparse(t) for n in notes[:-1] for t in targets(n.statement)}
    if any(ast.unparse(part) in kept for n in notes[1:] for part in ast.walk(n.tensor)):  # what is noted is asked again
        return None
    names = names_for(function, once)
    called = {
        ast.unparse(n.tensor): name for name, read in zip(names, once, strict=True) for n in notes if n.read is read
    }
    draft = Draft(function)
    put_before(draft, notes[0].statement, names, reading)
    for n in notes:
        draft.replace(n.read, called[ast.unparse(n.tensor)])
    tier = Safety.UNSAFE if reading.safety is Safety.SAFE else reading.safety
    return draft.fix(f"read {len(once)} numbers at once", tier, "all are read before one is noted", *reading.changes)


def note(function: Function, statement: ast.stmt) -> Note | None:
    """A statement as one that notes a number: `log.append(t.item())`, `log["loss"] = t.item()`."""
    return function.once("note", statement, lambda: as_note(function, statement))


def as_note(function: Function, statement: ast.stmt) -> Note | None:
    """The number that a statement notes, looked for anew; `note` looks once a statement."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method))) if method in NOTES:
            pass
        case ast.Expr(value=ast.Call(func=ast.Attribute(), args=[name, _], keywords=[])) if is_text(name):
            pass  # note("loss", loss.item()), whatever it is called
        case ast.Assign(targets=entries) if all(isinstance(e, ast.Subscript) for e in entries):
            pass
        case _:
            return None
    sites = function.sites_in(statement)
    read = sites[0].node if len(sites) == 1 else None
    tensor = tensor_read(function, read)
    if tensor is None or not isinstance(read, ast.Call) or function.fact(tensor).confidence < 1:
        return None
    return Note(statement, read, tensor) if function.pure(tensor) and function.runs_first(statement, read) else None


def is_text(node: ast.expr) -> bool:
    """Whether this is a text, also one that is filled in."""
    return isinstance(node, ast.JoinedStr) or text_of(node) is not None


def targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement writes to: the container and all that it is found by."""
    match statement:
        case ast.Assign(targets=entries):
            return [e.value for e in entries if isinstance(e, ast.Subscript)]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=container))):
            return [container]
    return []
