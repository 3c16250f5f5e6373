"""`kept.append(x.cpu())` in a loop and `torch.cat(kept)` after it, as `torch.cat(kept).cpu()`.

It waits for code like torchmetrics' `bert.py`; most loops that collect so are of an evaluation, and cold.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays

STAYS = Stays.LAST

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
    copied, loop = seen(function, site.node, "{t}.cpu(*_, **_)"), function.loop(site.node)
    noted = seen(function, function.parent(site.node), "{kept:name}.append({copy})")
    if loop is None or copied is None or noted is None:
        return None
    kept, name = noted["kept"], function.file.text(noted["kept"])
    other = [n for n in function.reads(name) if n is not kept]
    if len(function.binds(name)) != 1 or len(other) != 1 or any(n is other[0] for n in ast.walk(loop)):
        return None
    joined = function.parent(other[0])
    if not isinstance(joined, ast.expr) or not seen(
        function, joined, "torch.cat({all}, *_, **_)", "torch.stack({all}, *_, **_)"
    ):
        return None
    draft = Draft(function)
    draft.replace(noted["copy"], "{t}", t=copied["t"])
    draft.replace(joined, "{all}.cpu()", all=joined)
    return draft.fix(
        "collect on the device, copy once after the loop",
        Safety.UNSAFE,
        f"all of {name} stays in the device's memory until the loop is over",
    )
