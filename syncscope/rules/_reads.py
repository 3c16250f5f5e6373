"""Reads of single numbers: what is read, and what need not be."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function

STAYS = "it is a tensor that stays on the device, no Python number: what needs a number will read it"
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().item()  # !
            return x.sum() / max(found, 1)
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum()
            return x.sum() / found.clamp(min=1)
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().item()  # !
            size = x.detach().abs().mean()
            return x.sum() / (found + 1), x.cos().mean() * size.item()  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum()
            size = x.detach().abs().mean()
            return x.sum() / (found + 1), x.cos().mean() * size.detach()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]",
    ),
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
            torch._assert_async(torch.isfinite(loss), 'not math.isfinite(loss.item())')
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
                print(f"the loss is {value}")
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
            torch._assert_async(torch.isfinite(loss), 'not math.isfinite(value)')
            torch._assert_async(~torch.isnan(x).any(), 'torch.isnan(x).any().item()')
            return loss
        """,
        Safety.SUGGEST,
        "x: finite[n + 1]",
    ),
)


def tensor_read(node: ast.AST | None, function: Function) -> ast.expr | None:
    """The tensor t of `t.item()` or `float(t)`, or `int(t)` where t holds integers."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    if len(node.args) != 1:
        return None
    called = function.dotted(node.func)
    number = called == "float" or (called == "int" and function.fact(node.args[0]).dtype is Dtype.INT)
    return node.args[0] if number and not function.mixed(node.args[0]) else None


def detached(tensor: ast.expr, function: Function) -> ast.expr:
    """The tensor without a `.detach()` or `.data` of its own: it gets one."""
    if isinstance(tensor, ast.Attribute) and tensor.attr == "data":
        return detached(tensor.value, function)
    op = function.op(tensor)
    return detached(op.base, function) if op is not None and op.name == "detach" and not op.args else tensor


def known(site: Site, function: Function) -> bool:
    """Whether a read is known well enough to change code: surely, or because `.backward()` is called on what it is made of."""
    tensor = tensor_read(site.node, function)
    return site.confidence >= 2 or (tensor is not None and gone_back(function, tensor))


def gone_back(function: Function, tensor: ast.expr, depth: int = 2) -> bool:
    """Whether `.backward()` is called on a name that a value is made of, as on a tensor only."""
    for name in (n for n in ast.walk(tensor) if isinstance(n, ast.Name)):
        around = (function.parent(use) for use in function.reads(name.id))
        if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in around):
            return True
        made = function.definition(name)
        if (
            made is not None
            and depth
            and isinstance(made.value, ast.BinOp)
            and gone_back(function, made.value, depth - 1)
        ):
            return True
    return False


def clamped(site: Site, function: Function) -> Fix | None:
    """`max(t.item(), 1)` as `t.clamp(min=1)`, directly or with the number named in between."""
    tensor, read = tensor_read(site.node, function), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    used: ast.expr = read
    statement = function.parent(read)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and len(statement.targets) == 1:
        reads = function.reads(statement.targets[0].id)
        if len(reads) != 1 or function.definition(reads[0]) is not statement:
            return None
        used = reads[0]
    call = function.parent(used)
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    which = function.dotted(call.func)
    other = call.args[1] if call.args[0] is used else call.args[0]
    if which not in ("max", "min") or function.constant(other) is None:
        return None
    bound = "min" if which == "max" else "max"
    cut = "" if site.fact.dtype in (Dtype.INT, Dtype.BOOL) else ".detach()"  # as the number was
    draft = function.draft()
    if used is read:
        draft.replace(call, f"{{t}}{cut}.clamp({bound}={{c}})", t=tensor, c=other)
    else:
        draft.replace(read, f"{{t}}{cut}", t=tensor)
        draft.replace(call, f"{{t}}.clamp({bound}={{c}})", t=used, c=other)
    return draft.fix("keep it on the device, and clamp", Safety.UNSAFE, STAYS)


def checked_later(site: Site, function: Function) -> Fix | None:
    """`if not math.isfinite(loss.item()): raise` or `assert`, or of a name for the number, as a check on the device."""
    tensor, read = tensor_read(site.node, function), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    named = function.parent(read)
    definition = named if isinstance(named, ast.Assign) and named.value is read else None
    uses = function.seen_by(definition) if definition is not None else [read]
    statement = next((s for u in uses if isinstance(s := function.statement(u), (ast.If, ast.Assert))), None)
    if statement is None or (
        isinstance(statement, ast.If) and (statement.orelse or not leaves(function, statement.body))
    ):
        return None
    inside = {id(n) for n in ast.walk(statement)}
    if any(id(u) not in inside for u in uses) or (definition is not None and not function.alone(definition)):
        return None
    test, wrong = statement.test, isinstance(statement, ast.If)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wrong = test.operand, not wrong
    good = asked_of(function, test, uses, wrong)
    if good is None or (definition is not None and undone_between(function, tensor, definition, statement)):
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    told = statement.msg if isinstance(statement, ast.Assert) else None
    said = told if isinstance(told, ast.Constant) and isinstance(told.value, str) else None
    words = repr(" ".join(function.view.text(statement.test).split()))
    draft.replace(statement, f"torch._assert_async({good}, {{said}})", t=tensor, said=said or words)
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        "the error is a RuntimeError that comes later, after further steps were asked for; on CUDA the device is then lost",
    )


def kept(site: Site, function: Function) -> Fix | None:
    """`x / (mask.sum().item() + 1)`, directly or with a name for the number, without reading it: it meets tensors only."""
    tensor, read = tensor_read(site.node, function), site.node
    if tensor is None or not isinstance(read, ast.Call) or site.fact.dtype not in (Dtype.INT, Dtype.FLOAT):
        return None
    named = function.parent(read)
    definition = named if isinstance(named, ast.Assign) and named.value is read else None
    uses = function.seen_by(definition) if definition is not None else [read]
    if not uses or site.fact.ndim != 0 or not all(meets_tensor(function, use) for use in uses):
        return None
    if definition is not None and undone_between(function, tensor, definition, uses[-1]):
        return None
    cut = "" if site.fact.dtype is Dtype.INT else ".detach()"
    draft = function.draft()
    draft.replace(read, f"{{t}}{cut}", t=detached(tensor, function) if cut else tensor)
    changes = f"{STAYS}; where both are of no dimensions, the wider dtype wins" if cut else STAYS
    return draft.fix("keep it on the device", Safety.UNSAFE, changes)


def meets_tensor(function: Function, use: ast.expr) -> bool:
    """Whether a number only becomes an operand of a tensor, perhaps after arithmetic with numbers that are written out."""
    at, outer = use, function.parent(use)
    while isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        other = outer.right if outer.left is at else outer.left
        fact = function.fact(other)
        if (
            fact.is_tensor
            and fact.confidence >= 2
            and fact.dtype in (Dtype.FLOAT, Dtype.UNKNOWN)
            and not function.mixed(other)
        ):
            return True
        if function.constant(other) is None:
            return False
        at, outer = outer, function.parent(outer)
    return False


def leaves(function: Function, body: list[ast.stmt]) -> bool:
    """Whether a block tells something and ends the program: prints and logging, then `raise` or `sys.exit()`."""
    *said, last = body
    if not all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in said):
        return False
    ended = last.value.func if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
    return isinstance(last, ast.Raise) or (ended is not None and function.dotted(ended) in ("sys.exit", "exit", "quit"))


def asked_of(function: Function, test: ast.expr, uses: Sequence[ast.expr], wrong: bool) -> str | None:
    """What a test asks of a number, as a template of what must hold of the tensor. `wrong`: it asks for what must not be."""
    if test in uses and function.fact(tensor_read(test, function) or test).dtype is Dtype.BOOL:
        return "~{t}" if wrong else "{t}"
    if not isinstance(test, ast.Call) or len(test.args) != 1 or test.args[0] not in uses:
        return None
    name = (function.dotted(test.func) or "").removeprefix("math.").removeprefix("numpy.")
    if name not in ("isfinite", "isnan", "isinf") or wrong is (name == "isfinite"):
        return None
    return f"{'~' if wrong else ''}torch.{name}({{t}})"


def undone_between(function: Function, tensor: ast.expr, start: ast.stmt, end: ast.expr | ast.stmt) -> bool:
    """Whether a tensor may change after a statement, so that it cannot be read at a later one."""
    names = {n.id for n in ast.walk(tensor) if isinstance(n, ast.Name)}
    return not function.pure(tensor) or any(function.disturbed(n, start, end) for n in names)
