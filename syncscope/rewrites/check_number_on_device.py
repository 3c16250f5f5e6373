"""`if not math.isfinite(loss.item()): raise` or `assert`, or of a name for the number, as a check on the device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.checks import LATER, message
from syncscope.codemod.patterns.reads import tensor_read, undone_between
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety, Way

WAY = Way.CHECKS
EXAMPLES = (
    Example(
        """
        import torch

        def step(x: torch.Tensor):
            assert torch.isfinite(x).all().item(), "x has a hole"  # !
            return x * 2
        """,
        """
        import torch

        def step(x: torch.Tensor):
            torch._assert_async(torch.isfinite(x).all(), "x has a hole")
            return x * 2
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import math
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            if not math.isfinite(loss.item()):  # !
                raise ValueError("the loss is gone")
            return loss
        """,
        """
        import math
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            torch._assert_async(torch.isfinite(loss), "the loss is gone")
            return loss
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import math
        import sys
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            value = loss.item()  # !
            if not math.isfinite(value):
                print("the loss is not finite")
                sys.exit(1)
            if torch.isnan(x).any().item():  # !
                raise ValueError("no numbers")
            return loss
        """,
        """
        import math
        import sys
        import torch

        def step(x: torch.Tensor):
            loss = x.mean()
            torch._assert_async(torch.isfinite(loss), "the loss is not finite")
            torch._assert_async(~torch.isnan(x).any(), "no numbers")
            return loss
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    named = function.parent(read)
    definition = named if isinstance(named, ast.Assign) and named.value is read else None
    uses = function.seen_by(definition) if definition is not None else [read]
    statement = next((s for u in uses if isinstance(s := function.statement(u), (ast.If, ast.Assert))), None)
    said: ast.expr | None
    match statement:
        case ast.If(test=test, body=body, orelse=[]) if leaves(function, body):
            wrong, said = True, told_in(body)
        case ast.Assert(test=test, msg=said):
            wrong = False
        case _:
            return None
    if caught(function, statement):
        return None
    inside = {id(n) for n in ast.walk(statement)}
    if any(id(u) not in inside for u in uses) or (definition is not None and not function.alone(definition)):
        return None
    words = message(function, said, test, uses)
    if words is None:
        return None
    if (negated := seen(function, test, "not {it}")) is not None:
        test, wrong = negated["it"], not wrong
    good = asked_of(function, test, uses, wrong)
    if good is None or (definition is not None and undone_between(function, tensor, definition, statement)):
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    draft.replace(statement, f"torch._assert_async({good}, {{said}})", t=tensor, said=words)
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        *LATER,
    )


def leaves(function: Function, body: list[ast.stmt]) -> bool:
    """Whether a block tells something and ends the program: prints and logging, then `raise` or `sys.exit()`."""
    *said, last = body
    if not all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in said):
        return False
    match last:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=ended)):
            return function.dotted(ended) in ("sys.exit", "exit", "quit")
    return False


def told_in(body: list[ast.stmt]) -> ast.expr | None:
    """What a block that `leaves` says: the error's own words, or what it prints before; of more than that the first call."""
    calls = [call for each in body if (call := _call(each)) is not None and call.args]
    if not calls:
        return None
    return calls[0].args[0] if len(calls) == 1 and len(calls[0].args) == 1 else calls[0]


def _call(statement: ast.stmt) -> ast.Call | None:
    match statement:
        case ast.Raise(exc=ast.Call() as call):
            return call
        case ast.Expr(value=ast.Call(func=ast.Name(id="exit" | "quit") | ast.Attribute(attr="exit"))):
            return None
        case ast.Expr(value=ast.Call() as call):
            return call
    return None


def asked_of(function: Function, test: ast.expr, uses: Sequence[ast.expr], wrong: bool) -> str | None:
    """What a test asks of a number, as a template of what must hold of the tensor. `wrong`: it asks for what must not be."""
    if test in uses and function.fact(tensor_read(function, test) or test).dtype is Dtype.BOOL:
        return "~{t}" if wrong else "{t}"
    match test:
        case ast.Call(func=asked, args=[number]) if number in uses:
            name = (function.dotted(asked) or "").removeprefix("math.").removeprefix("numpy.")
        case _:
            return None
    if name not in ("isfinite", "isnan", "isinf") or wrong is (name == "isfinite"):
        return None
    return f"{'~' if wrong else ''}torch.{name}({{t}})"
