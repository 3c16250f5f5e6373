"""`{k: t.item() for k, t in d.items()}` reads them all at once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.joined import ONE_ELEMENT, TOGETHER
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.codemod.whereabouts import gathered_on_host
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
    found = seen(function, loop, "{ {k:name}: {read} for {k}, {t:name} in {d:name}.items(*_, **_) }")
    if found is None or tensor is None or not function.same_name(tensor, found["t"]) or not isinstance(loop, ast.expr):
        return None
    if gathered_on_host(function, found["d"]):
        return None
    join, changes = ("stack", TOGETHER) if function.fact(tensor).ndim == 0 else ("hstack", ONE_ELEMENT)
    draft = Draft(function)
    draft.replace(loop, f"dict(zip({{d}}, torch.{join}(tuple({{d}}.values())).tolist()))", d=found["d"])
    return draft.fix("read all at once", Safety.UNSAFE, changes)
