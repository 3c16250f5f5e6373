"""`torch.rand(1, device=d).item()` as `torch.rand(1).item()`: a random number that only the host needs is drawn there."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import DRAWN
from syncscope.codemod.patterns.reads import as_listed, read_of
from syncscope.codemod.proofs import one_value
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

CLEARS = True
TOGETHER = True
EXAMPLES = (
    Example(
        """
        import torch

        def rolled(x: torch.Tensor):
            shift = torch.randint(0, x.shape[0], (1,), device=x.device)
            return torch.roll(x, int(torch.randint(3, (1,), device=x.device)), 1), x.roll(shift.item(), 0)  # !
        """,
        """
        import torch

        def rolled(x: torch.Tensor):
            shift = torch.randint(0, x.shape[0], (1,))
            return torch.roll(x, int(torch.randint(3, (1,))), 1), x.roll(shift.item(), 0)
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch

        def mirrored(x: torch.Tensor, chance: float = 0.5):
            if torch.rand(1, device=x.device) < chance:  # !
                x = x.flip(-1)
            return x * 2
        """,
        """
        import torch

        def mirrored(x: torch.Tensor, chance: float = 0.5):
            if torch.rand(1) < chance:
                x = x.flip(-1)
            return x * 2
        """,
        Safety.UNSAFE,
        rule="tensor-in-condition",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    read = as_listed(function, site.node)
    value = read[0] if read is not None else site.node
    calls = drawn(function, value) if isinstance(value, ast.expr) else None
    if not calls:
        return None
    draft = Draft(function)
    for call in calls:
        draft.replace(call, "{call}", call=draft.without(call, "device"))
    return draft.fix(
        "draw it on the host",
        Safety.UNSAFE,
        "the host's generator draws other numbers for the same seed than the device's",
        redraws=True,
    )


def drawn(function: Function, node: ast.expr) -> list[ast.Call] | None:
    """The calls that draw on the device what a number is computed of, where it is computed of nothing else but numbers."""
    match node:
        case ast.Name():
            made = function.reaching_definition(node)
            uses = function.seen_by(made) if made is not None else []
            return (
                drawn(function, made.value)
                if made is not None and uses and all(read_of(function, u) for u in uses)
                else None
            )
        case ast.Call() if function.dotted(node.func) in DRAWN:
            given = {k.arg: k.value for k in node.keywords}
            sizes = [*node.args, *(value for name, value in given.items() if name not in ("device", "dtype"))]
            on_device = "device" in given and not given.keys() & {"generator", "out", "requires_grad", None}
            return [node] if on_device and not any(function.fact(size).is_tensor for size in sizes) else None
        case ast.BinOp(left=one, right=other) | ast.Compare(left=one, comparators=[other]):
            parts = [one, other]
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Subscript(value=whole, slice=ast.Constant(value=int())):
            parts = [whole]
        case _:
            return None
    found = [drawn(function, part) for part in parts if not is_number(function, part)]
    return [call for calls in found for call in calls or ()] if found and all(found) else None


def is_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a number of Python's, for all that is known."""
    return one_value(function, function.fact(node), node) or not (
        function.fact(node).is_tensor or isinstance(node, ast.Call)
    )
