"""Numbers that a loop adds up, `total += loss.item()`: added up on the device, and read once after the loop."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._reads import tensor_read

EXAMPLES = (
    Example(
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = []
            running_loss = 0.0
            for i in range(steps):
                loss = (x - i).square().mean()
                running_loss += loss.item()  # !
                if i % 3 == 2:
                    seen.append(running_loss / 3)  # every three steps
                    running_loss = 0.0
            return seen
        """,
        """
        import torch

        def train(x: torch.Tensor, steps: int):
            seen = []
            running_loss = 0.0
            for i in range(steps):
                loss = (x - i).square().mean()
                running_loss = running_loss + loss.detach().double()
                if i % 3 == 2:
                    seen.append(float(running_loss) / 3)  # every three steps
                    running_loss = 0.0
            running_loss = float(running_loss)
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
    ),
    Example(
        """
        import torch

        def mean_error(errors: list[torch.Tensor]):
            total, worst = 0.0, 0
            for number, error in enumerate(errors):
                total += error.mean().item() * 2  # !
                if number % 2:
                    print(total)
            return total
        """,
        """
        import torch

        def mean_error(errors: list[torch.Tensor]):
            total, worst = 0.0, 0
            for number, error in enumerate(errors):
                total = total + error.mean().detach().double() * 2
                if number % 2:
                    print(float(total))
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total += (x - y).square().mean().item() * 2  # !
            return total
        """,
        """
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total = total + (x - y).square().mean().detach().double() * 2
            total = float(total)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]",
    ),
)


def accumulated(site: Site, function: Function) -> Fix | None:
    """`total += loss.item()` in a loop: the total stays on the device until the loop is over."""
    tensor, add, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    factor: ast.expr | None = None
    if isinstance(add, ast.BinOp) and isinstance(add.op, ast.Mult):
        factor = add.right if add.left is site.node else add.left
        add = function.parent(add)
    if (
        tensor is None
        or loop is None
        or not isinstance(add, ast.AugAssign)
        or not isinstance(add.op, ast.Add)
        or not isinstance(add.target, ast.Name)
        or (factor is not None and (function.fact(factor).is_tensor or not function.pure(factor)))
    ):
        return None
    total = add.target.id
    starts = [function.constant(value) for value in starting(function, total)]
    others = [n for n in function.binds(total) if n is not add.target]
    if len(starts) != len(others) or not starts or None in starts or function.shared(total):
        return None
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == total and isinstance(n.ctx, ast.Load)]
    if any(not function.sometimes(n, loop) for n in inside):
        return None
    dtype = site.fact.dtype
    whole = dtype is Dtype.INT and all(isinstance(s, int) for s in starts) and factor is None
    if whole and isinstance(site.node, ast.Call) and function.dotted(site.node.func) == "float":
        return None
    if dtype is Dtype.BOOL or (dtype is not Dtype.FLOAT and not whole and any(isinstance(s, int) for s in starts)):
        return None
    number = "int" if whole else "float"
    draft = function.draft()
    wide = ".detach().long()" if whole else ".detach().double()"
    more = " * {factor}" if factor is not None else ""
    draft.replace(add, f"{total} = {total} + {{t}}{wide}{more}", t=tensor, factor=factor or "1")
    for name in inside:
        draft.replace(name, f"{number}({total})")
    draft.insert_after(loop, f"{total} = {number}({total})")
    return draft.fix(
        "add up on the device, read once after the loop",
        Safety.UNSAFE,
        f"{total} is a tensor inside the loop, in float64, which MPS has not; it holds one number a pass, as before",
    )


def starting(function: Function, name: str) -> list[ast.expr]:
    """The values that a name is given, alone, in a chain, or beside others: `a, b = 0.0, 0`."""
    found = [s.value for s in assigned(function, name)]
    for bound in function.binds(name):
        side = function.parent(bound)
        assign = function.parent(side) if isinstance(side, ast.Tuple) else None
        values = assign.value if isinstance(assign, ast.Assign) else None
        if isinstance(side, ast.Tuple) and isinstance(values, ast.Tuple) and len(side.elts) == len(values.elts):
            found.append(values.elts[side.elts.index(bound)])
    return found


def assigned(function: Function, name: str) -> list[ast.Assign]:
    """The assignments to a name, alone or in a chain `a = b = 0.0`."""
    parents = (function.parent(n) for n in function.binds(name))
    return [p for p in parents if isinstance(p, ast.Assign)]
