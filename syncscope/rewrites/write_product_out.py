"""`x.add(y, alpha=t)` as `x + t * y`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

TEMPLATES = {  # (operation, keyword): code
    ("add", "alpha"): "{x} + {t} * {a}",
    ("sub", "alpha"): "{x} - {t} * {a}",
    ("add_", "alpha"): "{x}.add_({t} * {a})",
    ("sub_", "alpha"): "{x}.sub_({t} * {a})",
    ("addcmul", "value"): "{x} + {t} * {a} * {b}",
    ("addcmul_", "value"): "{x}.add_({t} * {a} * {b})",
    ("addcdiv", "value"): "{x} + {t} * {a} / {b}",
    ("addcdiv_", "value"): "{x}.add_({t} * {a} / {b})",
}
EXAMPLES = (
    Example(
        """
        import torch

        def update(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
            rate = b.norm()
            x = x.clone()
            x.addcdiv_(a, b + 10, value=rate)  # !
            return x
        """,
        """
        import torch

        def update(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
            rate = b.norm()
            x = x.clone()
            x.add_(rate * a / (b + 10))
            return x
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or len(op.keywords) != 1 or not 1 <= len(op.args) <= 2:
        return None
    keyword, factor = next(iter(op.keywords.items()))
    template = TEMPLATES.get((op.name, keyword))
    if template is None or ("{b}" in template) != (len(op.args) == 2) or site.fact.ndim != 0:
        return None
    draft = Draft(function)
    draft.replace(site.node, template, x=op.base, t=factor, a=op.args[0], b=op.args[-1])
    return draft.fix(
        "write the product out",
        Safety.UNSAFE,
        "two roundings take the place of one, and gradients flow to the factor too",
    )
