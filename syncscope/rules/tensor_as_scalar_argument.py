"""A tensor of the device where a Python number is taken: `x.add(y, alpha=t)`, `x.addcmul(a, b, value=t)`.

Why it waits
------------
Such an argument is a number of the host: PyTorch reads it with `.item()`, and waits until the device has computed it and
everything before it. `masked_fill` takes a tensor as its value and reads it all the same, and `clamp` reads a bound that is a
tensor where the other one is a number.

Fix safety
----------
The product can be written out, with the tensor as a factor. Unsafe, because two roundings take the place of one, and because
gradients then flow to the factor too. `torch.where` chooses between two tensors and reads none, and each of two bounds can be
clamped alone: unsafe, because dtypes are then promoted. A sum of the k largest can be that of the first k of all, sorted, with
a k that stays on the device.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._device_number import OF_ARGUMENTS, argument
from syncscope.rules._hardest import hardest

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("scalar_slot",)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
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

        def forward(x: torch.Tensor, y: torch.Tensor):
            rate = y.detach().sigmoid().mean()
            return torch.add(x, y, alpha=rate)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            rate = y.detach().sigmoid().mean()
            return x + rate * y
        """,
        Safety.UNSAFE,
        "x: finite[n]; y: finite[n]",
    ),
    Example(
        """
        import torch

        def hardest(x: torch.Tensor):
            x = x.flatten()
            k = (x > 0).sum().clamp(max=x.shape[0])
            return x.topk(k).values.sum()  # !
        """,
        """
        import torch

        def hardest(x: torch.Tensor):
            x = x.flatten()
            k = (x > 0).sum().clamp(max=x.shape[0])
            return torch.where(torch.arange(x.shape[-1], device=x.device) < k, x.sort(descending=True).values, 0).sum()
        """,
        Safety.UNSAFE,
        "x: normal[n, m]",
    ),
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
    *OF_ARGUMENTS,
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.operand)} is a tensor where a Python number is taken: {view.quote(site.node)} waits to read it"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    return first_k(site, function) or hardest(site, function) or argument(site, function) or written_out(site, function)


def first_k(site: Site, function: Function) -> Fix | None:
    """`x.topk(k).values.sum()`: the sum of the first k of all, sorted."""
    op = function.op(site.node)
    if op is None or op.name != "topk" or len(op.args) != 1 or op.keywords or not isinstance(op.base, ast.Name):
        return None
    values = function.parent(site.node)
    first = isinstance(values, ast.Subscript) and function.constant(values.slice) == 0
    if not first and not (isinstance(values, ast.Attribute) and values.attr == "values"):
        return None
    total = function.parent(function.parent(values) or site.node) if values is not None else None
    reduction = function.op(total)
    if reduction is None or reduction.base is not values or reduction.args or reduction.keywords:
        return None
    if reduction.name not in ("sum", "mean") or (reduction.name == "mean" and site.fact_of(op.base).ndim != 1):
        return None
    assert isinstance(total, ast.expr)
    k = op.args[0]
    draft = function.draft()
    kept = (
        "torch.where(torch.arange({x}.shape[-1], device={x}.device) < {k}, {x}.sort(descending=True).values, 0).sum()"
    )
    draft.replace(total, f"{kept} / {{k}}" if reduction.name == "mean" else kept, x=op.base, k=k)
    return draft.fix(
        "sort all, and keep the first",
        Safety.UNSAFE,
        "the sum may differ in its last bits, and a k that is larger than the size takes all instead of raising",
    )


def written_out(site: Site, function: Function) -> Fix | None:
    """`x.add(y, alpha=t)` as `x + t * y`."""
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or len(op.keywords) != 1 or not 1 <= len(op.args) <= 2:
        return None
    keyword, factor = next(iter(op.keywords.items()))
    template = TEMPLATES.get((op.name, keyword))
    if template is None or ("{b}" in template) != (len(op.args) == 2) or site.fact.ndim != 0:
        return None
    draft = function.draft()
    draft.replace(site.node, template, x=op.base, t=factor, a=op.args[0], b=op.args[-1])
    return draft.fix(
        "write the product out",
        Safety.UNSAFE,
        "two roundings take the place of one, and gradients flow to the factor too",
    )
