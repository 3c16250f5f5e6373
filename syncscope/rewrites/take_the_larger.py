"""`x[x < lo] = lo[x < lo]` as `x = torch.maximum(x, lo)`, and `>` as `torch.minimum`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.writes import changed, seen_otherwise, written_after
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

SIGNS = {ast.Lt: "maximum", ast.LtE: "maximum", ast.Gt: "minimum", ast.GtE: "minimum"}  # of `x < y`, where y is taken
TURNED = {"maximum": "minimum", "minimum": "maximum"}
COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def raised(x: torch.Tensor, low: torch.Tensor):
            x = x.clone()
            x[x < low] = low[x < low]  # !
            return x
        """,
        """
        import torch

        def raised(x: torch.Tensor, low: torch.Tensor):
            x = x.clone()
            x = torch.maximum(x, low)
            return x
        """,
        Safety.UNSAFE,
        "x: normal[n, m]; low: normal[n, m]",
        rule="boolean-mask-write",
    ),
    Example(
        """
        import torch

        def lowered(x: torch.Tensor, high: torch.Tensor):
            x = x * 1
            over = high < x
            x[over] = high[over]  # !
            return x
        """,
        """
        import torch

        def lowered(x: torch.Tensor, high: torch.Tensor):
            x = x * 1
            over = high < x
            x = torch.minimum(x, high)
            return x
        """,
        Safety.UNSAFE,
        "x: normal[n, m]; high: normal[n, m]",
        rule="boolean-mask-write",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    assign = function.statement(site.node)
    written = seen(function, assign, "{x:name}[{m}] = {y:name}[{m}]")
    if written is None or assign is None:
        return None
    x, y, mask = written["x"], written["y"], written["m"]
    definition = function.reaching_definition(mask)
    asked = function.value(mask)
    match asked:
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in SIGNS:
            name = SIGNS[type(sign)]
        case _:
            return None
    if function.same_name(left, y) and function.same_name(right, x):
        name = TURNED[name]
    elif not (function.same_name(left, x) and function.same_name(right, y)):
        return None
    one, other = function.fact(x), function.fact(y)
    if not (one.is_tensor and other.is_tensor) or function.same_name(x, y) or function.mixed(x) or function.mixed(y):
        return None
    if one.dtype is not other.dtype and Dtype.UNKNOWN not in (one.dtype, other.dtype):
        return None
    if definition is not None and changed(function, definition, assign, asked):
        return None
    if written_after(function, y, assign) or seen_otherwise(function, x, assign):
        return None
    draft = Draft(function)
    draft.replace(assign, f"{{x}} = torch.{name}({{x}}, {{y}})", x=x, y=y)
    word, bound = function.file.text(x), function.file.text(y)
    return draft.fix(
        f"take the {'larger' if name == 'maximum' else 'smaller'} of both",
        Safety.UNSAFE,
        f"{word} is a new tensor: other views of the old one keep their values; both must be of one dtype; "
        f"NaN in {bound} comes through, and where both are equal each gets half of the gradient",
    )
