"""`max(t.item(), 1)` as `t.clamp(min=1)`, directly or with the number named in between."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import (
    STAYS_TENSOR,
    given_away,
    meets_numbers,
    needs_number,
    tensor_read,
    without_gradient,
)
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

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

        def pad(length: torch.LongTensor, size: int):
            missing = max(0, length.max().item() - size)  # !
            more = max(0, length.max().item())  # !
            return torch.zeros(3, missing), torch.zeros(3, more)
        """
    ),
    Example(
        """
        import torch

        def share(x: torch.Tensor, drop: torch.Tensor):
            number = max(x.sum().item(), 1)  # !
            return {"share": drop.sum().item() / number}  # !
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    used: ast.expr = read
    match function.parent(read):
        case ast.Assign(targets=[ast.Name(id=name)]) as statement:
            reads = function.reads(name)
            if len(reads) != 1 or function.reaching_definition(reads[0]) is not statement:
                return None
            used = reads[0]
    call = function.parent(used)
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    which = function.dotted(call.func)
    other = call.args[1] if call.args[0] is used else call.args[0]
    if which not in ("max", "min") or function.constant(other) is None or needs_number(function, call):
        return None
    if meets_numbers(function, call):
        return None
    bound = "min" if which == "max" else "max"
    whole = site.fact.dtype in (Dtype.INT, Dtype.BOOL) or without_gradient(function, tensor)
    cut = "" if whole else ".detach()"  # as the number was
    draft = Draft(function)
    if used is read:
        draft.replace(call, f"{{t}}{cut}.clamp({bound}={{c}})", t=tensor, c=other)
    else:
        draft.replace(read, f"{{t}}{cut}", t=tensor)
        draft.replace(call, f"{{t}}.clamp({bound}={{c}})", t=used, c=other)
    tier = Safety.SUGGEST if given_away(function, call) else Safety.UNSAFE
    return draft.fix("keep it on the device, and clamp", tier, STAYS_TENSOR)
