"""`if done.all(): break` asked every sixteenth pass of its loop, as a suggestion: what runs on meanwhile must do no harm."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Edit, Fix, Safety
from syncscope.model.source import Span

ADDS = Adds.PASSES
PASSES = 16
CHANGES = (
    "up to 15 more passes run once it is true: they must leave the result as it is, or what they add must be cut off"
)
CLEARS = True
EXAMPLES = (
    Example(
        """
        import torch

        def generate(model: torch.nn.Module, tokens: torch.LongTensor, end: int):
            done = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
            for step in range(512):
                following = model(tokens)[:, -1].argmax(dim=-1).masked_fill(done, end)
                tokens = torch.cat([tokens, following[:, None]], dim=1)
                done = done | (following == end)
                if done.all():  # !
                    break
            return tokens
        """,
        """
        import torch

        def generate(model: torch.nn.Module, tokens: torch.LongTensor, end: int):
            done = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
            for step in range(512):
                following = model(tokens)[:, -1].argmax(dim=-1).masked_fill(done, end)
                tokens = torch.cat([tokens, following[:, None]], dim=1)
                done = done | (following == end)
                if step % 16 == 15 and done.all():
                    break
            return tokens
        """,
        Safety.SUGGEST,
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def solve(x: torch.Tensor, tolerance: float):
            for i in range(100):
                new = (x + 2 / x) / 2
                change = (new - x).abs().max()
                x = new
                if change.item() < tolerance:  # !
                    break
            return x
        """,
        """
        import torch

        def solve(x: torch.Tensor, tolerance: float):
            for i in range(100):
                new = (x + 2 / x) / 2
                change = (new - x).abs().max()
                x = new
                if i % 16 == 15 and change.item() < tolerance:
                    break
            return x
        """,
        Safety.SUGGEST,
        rule="host-read",
    ),
    Example(
        """
        import torch

        def search(x: torch.Tensor):
            for i in range(100):
                x = x * 2
                if (x > 9).all():  # !
                    return i
            return x
        """,
        rule="tensor-in-condition",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node) if isinstance(site.node, ast.expr) else None
    if (
        not isinstance(statement, ast.If)
        or statement.orelse
        or not all(isinstance(s, ast.Break) for s in statement.body)
    ):
        return None
    if not any(n is site.node for n in ast.walk(statement.test)):
        return None
    loop = function.loop(statement)
    number = counter(function, loop)
    if (
        not isinstance(loop, ast.For)
        or number is None
        or statement not in loop.body
        or mentions(statement.test, number)
    ):
        return None
    if any(map(counts_passes, ast.walk(loop))):
        return None
    draft = Draft(function)
    rarely, start = f"{number} % {PASSES} == {PASSES - 1} and ", function.file.span(statement.test).start
    if isinstance(statement.test, (ast.Call, ast.Compare, ast.Name)):  # which binds closer than `and`
        draft.edits.append(Edit(Span(start, start), rarely))
    else:
        draft.replace(statement.test, f"{rarely}{{test}}", test=statement.test)
    return draft.fix(f"ask every {PASSES} passes", Safety.SUGGEST, CHANGES)


def counter(function: Function, loop: ast.AST | None) -> str | None:
    """The name that counts the passes of a loop: `for i in range(n)`, `for i, x in enumerate(xs)`."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    name, target = function.dotted(loop.iter.func), loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    counts = name == "enumerate" or (name == "range" and len(loop.iter.args) < 3)
    return target.id if counts and isinstance(target, ast.Name) and target.id != "_" else None


def counts_passes(node: ast.AST) -> bool:
    """Whether code leaves something of each pass, so that a few more are seen: `total += 1`, `found.append(x)`, `yield x`."""
    match node:
        case ast.AugAssign() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.Call(func=ast.Attribute(attr="append" | "extend" | "add" | "update" | "write" | "put")):
            return True
    return False


def mentions(node: ast.AST, name: str) -> bool:
    """Whether a condition has the counter in it: it is asked rarely as it is, or by its own rule."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
