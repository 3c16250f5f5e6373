"""`[eigh(m) for m in ms]` as one call for all."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.linalg import called
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

OF_A_BATCH = {  # whether the result is one tensor, or a tuple of them
    "torch.linalg.eigh": False, "torch.linalg.eig": False, "torch.linalg.svd": False, "torch.linalg.eigvalsh": True,
    "torch.linalg.svdvals": True, "torch.linalg.eigvals": True, "torch.linalg.pinv": True, "torch.linalg.cond": True,
}  # fmt: skip
EXAMPLES = (
    Example(
        """
        import torch

        def sizes(a: torch.Tensor, b: torch.Tensor):
            layers = [a, b]
            return [torch.linalg.svdvals(layer) for layer in layers]  # !
        """,
        """
        import torch

        def sizes(a: torch.Tensor, b: torch.Tensor):
            layers = [a, b]
            return list(torch.linalg.svdvals(torch.stack(tuple(layers))).unbind())
        """,
        Safety.SUGGEST,
        "a: finite[3, 2]; b: finite[3, 2]",
    ),
    Example(
        """
        import torch

        def directions(layers: list[torch.Tensor]):
            return [torch.linalg.eigh(layer) for layer in layers]  # !
        """,
        """
        import torch

        def directions(layers: list[torch.Tensor]):
            return list(zip(*torch.linalg.eigh(torch.stack(tuple(layers)))))
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or any(k.arg in ("out", None) for k in call.keywords):
        return None
    loop, single = function.parent(call), OF_A_BATCH.get(called(function, call))
    if single is None or not isinstance(loop, ast.ListComp) or loop.elt is not call or len(loop.generators) != 1:
        return None
    each, matrix = loop.generators[0], call.args[0] if call.args else None
    if each.ifs or each.is_async or matrix is None or not isinstance(each.target, ast.Name):
        return None
    if any(function.same_name(n, each.target) for a in (*call.args[1:], *call.keywords) for n in ast.walk(a)):
        return None
    draft = Draft(function)
    whole = "torch.stack(tuple({all}))"
    if not function.same_name(matrix, each.target):
        whole = "torch.stack([{m} for {x} in {all}])"
    batch = draft.part(whole, all=each.iter, m=matrix, x=each.target.id)
    new = draft.call(call, {matrix: batch})
    draft.replace(loop, "list({call}.unbind())" if single else "list(zip(*{call}))", call=new)
    plain = "" if single else "; each result is a plain tuple"
    return draft.fix(
        "ask once for all", Safety.SUGGEST, f"there must be at least one, and all must have one shape{plain}"
    )
