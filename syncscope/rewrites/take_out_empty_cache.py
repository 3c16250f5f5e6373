"""`torch.cuda.empty_cache()` taken out."""

from __future__ import annotations

import ast
import re

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

SHORT = re.compile(r"oom|memory|alloc|reserved", re.IGNORECASE)
PHASES = {"torch.cuda.synchronize", "torch.cuda.empty_cache", "torch.cuda.ipc_collect"}
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
                torch.cuda.empty_cache()  # !
        """,
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def train(trainer, batches):
            for batch in batches:
                trainer.fit(batch)
                torch.cuda.empty_cache()  # !
                torch.cuda.synchronize()
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.parent(site.node)
    if not isinstance(statement, ast.Expr):
        return None
    if not function.alone(statement):
        return None
    gone: ast.stmt = statement
    match function.parent(statement):
        case ast.If(test=test, orelse=[]) as outer if (
            len(outer.body) == 1
        ):  # with the condition, which nobody else needs
            if not function.pure(test) or function.is_elif(outer) or not function.alone(outer):
                return None
            gone = outer
    if said_why(function, gone) or asks_for_memory(function) or out_of_memory(function, statement):
        return None
    if ends_phase(function, gone):
        return None
    if len(function.block(gone)) == 1:  # what there is for this alone stays: a function that is called so
        return None
    draft = Draft(function)
    draft.remove(gone)
    return draft.fix("take it out", Safety.SUGGEST, "memory that PyTorch holds is not given back to the driver")


def said_why(function: Function, statement: ast.stmt) -> bool:
    """Whether a comment in it, or right above it, says what it is for."""
    file, span = function.file, function.file.span(statement)
    above = file.code[: file.starts[statement.lineno - 1]].splitlines()[-1:]
    return b"#" in file.code[span.start : span.end] or any(line.lstrip().startswith(b"#") for line in above)


def ends_phase(function: Function, statement: ast.stmt) -> bool:
    """Whether it stands beside another that waits for the device, or gives back what other processes hold: who writes both
    does it on purpose, between what generates and what trains."""
    block = function.block(statement)
    at = block.index(statement)
    beside = [*block[max(at - 1, 0) : at], *block[at + 1 : at + 2]]
    calls = (s.value.func for s in beside if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return any(function.dotted(called) in PHASES for called in calls)


def out_of_memory(function: Function, statement: ast.stmt) -> bool:
    """Whether this is done because there was no memory left: where an error is handled, or under a condition that says so."""
    for outer in function.around(statement):
        match outer:
            case ast.ExceptHandler():
                return True
            case ast.If(test=test) | ast.While(test=test) if SHORT.search(ast.unparse(test)):
                return True
    return False


def asks_for_memory(function: Function) -> bool:
    """Whether the driver is asked how much memory is free: what PyTorch holds is not."""
    return any((function.dotted(c.func) or "").endswith(".mem_get_info") for c in function.every(ast.Call))
