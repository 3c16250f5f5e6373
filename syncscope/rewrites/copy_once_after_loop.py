"""`kept.append(x.cpu())` in a loop and `torch.cat(kept)` after it, as `torch.cat(kept).cpu()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def predict(model, loader):
            found = []
            for x in loader:
                y = model(x.cuda()).softmax(dim=1)
                found.append(y.detach().cpu())  # !
            return torch.cat(found)
        """,
        """
        import torch

        def predict(model, loader):
            found = []
            for x in loader:
                y = model(x.cuda()).softmax(dim=1)
                found.append(y.detach())
            return torch.cat(found).cpu()
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call, append, loop = site.node, function.parent(site.node), function.loop(site.node)
    if (
        loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "cpu"
        or not isinstance(append, ast.Call)
        or not isinstance(append.func, ast.Attribute)
        or append.func.attr != "append"
        or not isinstance(append.func.value, ast.Name)
    ):
        return None
    name = append.func.value.id
    other = [n for n in function.reads(name) if n is not append.func.value]
    if len(function.binds(name)) != 1 or len(other) != 1 or any(n is other[0] for n in ast.walk(loop)):
        return None
    joined = function.parent(other[0])
    if not isinstance(joined, ast.Call) or function.dotted(joined.func) not in ("torch.cat", "torch.stack"):
        return None
    draft = Draft(function)
    draft.replace(call, "{t}", t=call.func.value)
    draft.replace(joined, "{all}.cpu()", all=joined)
    return draft.fix(
        "collect on the device, copy once after the loop",
        Safety.UNSAFE,
        f"all of {name} stays in the device's memory until the loop is over",
    )
