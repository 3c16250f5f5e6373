"""`[t.item() for t in tensors]` reads them all at once."""

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
            every = [part.item() for part in parts.values()]  # !
            return every
        """,
        """
        import torch

        def losses(x: torch.Tensor):
            parts = {"error": x.square().mean(), "size": x.abs().mean()}
            every = torch.stack(tuple(parts.values())).tolist()
            return every
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    loop = function.parent(site.node)
    tensor = tensor_read(function, site.node)
    if not isinstance(loop, (ast.ListComp, ast.GeneratorExp)) or len(loop.generators) != 1 or loop.elt is not site.node:
        return None
    each = loop.generators[0]
    if each.ifs or each.is_async or not isinstance(tensor, ast.Name) or not function.same_name(tensor, each.target):
        return None
    draft = Draft(function)
    whole = "torch.stack(tuple({all})).tolist()"  # an argument alone has no parentheses but the call's
    draft.replace(loop, f"({whole})" if isinstance(loop, ast.GeneratorExp) else whole, all=each.iter)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)
