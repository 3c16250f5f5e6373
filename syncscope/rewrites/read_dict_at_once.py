"""`{k: t.item() for k, t in d.items()}` reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import TOGETHER, tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            named = {name: part.item() for name, part in parts.items()}  # !
            return named
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            named = dict(zip(parts, torch.stack(tuple(parts.values())).tolist()))
            return named
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    loop, tensor = function.parent(site.node), tensor_read(function, site.node)
    if not isinstance(loop, ast.DictComp) or len(loop.generators) != 1 or loop.value is not site.node:
        return None
    each = loop.generators[0]
    items = each.iter
    if (
        each.ifs
        or each.is_async
        or not isinstance(each.target, ast.Tuple)
        or len(each.target.elts) != 2
        or not function.same_name(loop.key, each.target.elts[0])
        or tensor is None
        or not function.same_name(tensor, each.target.elts[1])
        or not isinstance(items, ast.Call)
        or not isinstance(items.func, ast.Attribute)
        or items.func.attr != "items"
        or not isinstance(items.func.value, ast.Name)
    ):
        return None
    draft = Draft(function)
    draft.replace(loop, "dict(zip({d}, torch.stack(tuple({d}.values())).tolist()))", d=items.func.value)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)
