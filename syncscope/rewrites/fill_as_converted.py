"""`torch.tensor(0).float().to(device)` as `torch.zeros((), dtype=torch.float, device=device)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import target
from syncscope.codemod.patterns.numbers import element, filling
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

DTYPES = frozenset("float double half long int".split())
COMPILES = True
TOGETHER = "made"
EXAMPLES = (
    Example(
        """
        import torch

        def penalty(x: torch.Tensor):
            total = torch.tensor(0).float().to(x.device)  # !
            return total + x.square().sum()
        """,
        """
        import torch

        def penalty(x: torch.Tensor):
            total = torch.zeros((), dtype=torch.float, device=x.device)
            return total + x.square().sum()
        """,
        Safety.SAFE,
        "x: float[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    where = target(function, site.node)
    match site.node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Call(args=[given], keywords=[]) as made, attr=word),
                    args=[],
                    keywords=[],
                )
            )
        ) if where is not None and word in DTYPES and function.dotted(made.func) == "torch.tensor":
            number, size = element(function, given)
            value = function.constant(number)
            if value not in range(-127, 128):  # any other may be rounded twice
                return None
            draft = Draft(function)
            held = {"dtype": draft.part(f"torch.{word}"), "device": where}
            draft.replace(site.node, "{call}", call=filling(draft, made, number, size, **held))
            return draft.fix("make it on the device", Safety.SAFE)
    return None
