"""Numbers that a loop puts into a list, `losses.append(loss.item())`: read together after the loop."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._reads import tensor_read
from syncscope.rules._running_total import assigned

EXAMPLES = (
    Example(
        """
        import torch

        def history(x: torch.Tensor):
            seen = []
            for number in range(4):
                seen.append((x * number).sigmoid().mean().item())  # !
            return seen
        """,
        """
        import torch

        def history(x: torch.Tensor):
            seen = []
            for number in range(4):
                seen.append((x * number).sigmoid().mean().detach())
            seen = torch.stack(seen).tolist() if seen else []
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
)


def collected(site: Site, function: Function) -> Fix | None:
    """`history.append(loss.item())` in a loop: tensors are collected, and read together after it."""
    tensor, call, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    if (
        tensor is None
        or loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "append"
        or not isinstance(call.func.value, ast.Name)
        or site.fact.ndim != 0
        or site.fact.dtype not in (Dtype.FLOAT, Dtype.INT)
    ):
        return None
    name = call.func.value.id
    made = [s for s in assigned(function, name) if isinstance(s.value, ast.List) and not s.value.elts]
    block = function.block(loop)
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    if len(function.binds(name)) != 1 or len(made) != 1 or made[0] not in block or inside != [call.func.value]:
        return None
    between = [n for n in function.reads(name) if n.lineno < loop.lineno]
    if between or block.index(made[0]) > block.index(loop):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=tensor) if isinstance(site.node, ast.expr) else None
    draft.insert_after(loop, f"{name} = torch.stack({name}).tolist() if {name} else []")
    return draft.fix(
        "collect on the device, read all after the loop",
        Safety.UNSAFE,
        f"{name} holds tensors inside the loop; they must all have one dtype and live on one device",
    )
