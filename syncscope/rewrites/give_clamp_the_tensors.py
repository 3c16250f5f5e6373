"""`torch.clamp(x, low.item(), high.item())` as `torch.clamp(x, low, high)`: its bounds may be tensors, where both are."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import detached, tensor_read
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

CHANGES = "a bound that has dimensions has a say in the shape and the dtype, too; all must live on one device"
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, weight: torch.Tensor):
            low, high = weight.min(), weight.max()
            return torch.clamp(x.float(), low.item(), high.item())  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, weight: torch.Tensor):
            low, high = weight.min(), weight.max()
            return torch.clamp(x.float(), low.detach(), high.detach())
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; weight: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, most: torch.Tensor):
            return x.sigmoid().clamp(max=most.mean().item())  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, most: torch.Tensor):
            return x.sigmoid().clamp(max=most.mean().detach())
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; most: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, most: torch.Tensor):
            return x.sigmoid().clamp(0.5, most.mean().item())  # !
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    outer = function.parent(site.node)
    call = function.parent(outer) if isinstance(outer, ast.keyword) else outer
    op = function.op(call)
    if op is None or not isinstance(call, ast.Call) or op.name != "clamp" or not set(op.keywords) <= {"min", "max"}:
        return None
    given = function.fact(op.base)
    if not given.is_tensor or given.confidence < 2 or given.dtype not in (Dtype.FLOAT, Dtype.UNKNOWN):
        return None
    reads = [*op.args, *op.keywords.values()]
    tensors = [tensor_read(function, read) for read in reads]
    draft = Draft(function)
    for read, tensor in zip(reads, tensors, strict=True):
        if tensor is None or not function.fact(tensor).is_tensor:
            return None  # of a number and a tensor clamp makes nothing
        draft.replace(read, "{t}.detach()", t=detached(function, tensor))
    return draft.fix("clamp with the tensors", Safety.UNSAFE, CHANGES)
