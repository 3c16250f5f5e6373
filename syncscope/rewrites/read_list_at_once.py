"""`[t.item() for t in tensors]` reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
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
    loop, tensor = function.parent(site.node), tensor_read(function, site.node)
    found = seen(function, loop, "[{read} for {t:name} in {all}]", "({read} for {t:name} in {all})")
    if found is None or tensor is None or not function.same_name(tensor, found["t"]) or not isinstance(loop, ast.expr):
        return None
    draft = Draft(function)
    whole = "torch.stack(tuple({all})).tolist()"  # an argument alone has no parentheses but the call's
    draft.replace(loop, f"({whole})" if isinstance(loop, ast.GeneratorExp) else whole, all=found["all"])
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)
