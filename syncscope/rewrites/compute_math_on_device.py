"""`math.exp(t)` as `t.detach().exp()`."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around
from syncscope.codemod.patterns.reads import kept_by_key, needs_number
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.model.ops import Op
from syncscope.project.syntax import name_of, walk

ON_DEVICE = {"exp", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "floor", "ceil"}
TOGETHER = True
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            error = x.square().mean()
            return math.exp(error)  # !
        """,
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            error = x.square().mean()
            return error.detach().exp()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import math
        import torch

        def clipped(x: torch.Tensor, limit: float):
            scale = min(1, math.sqrt(limit / (x.square().sum() + 1e-6)))  # !
            return x * scale
        """,
        """
        import math
        import torch

        def clipped(x: torch.Tensor, limit: float):
            scale = (limit / (x.square().sum() + 1e-6)).detach().sqrt().clamp(max=1)
            return x * scale
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; limit: number",
    ),
    Example(
        """
        import math
        import torch

        def clipped(x: torch.Tensor, limit: float):
            return x * min(limit, math.sqrt(x.square().sum()))  # !
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if site.op is not Op.MATH or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    name = (function.dotted(call.func) or "").removeprefix("math.")
    if name not in ON_DEVICE or name in ("floor", "ceil") or site.fact.dtype is not Dtype.FLOAT:
        return None
    limit = around(function, call, "min({it}, {c})", "min({c}, {it})", "max({it}, {c})", "max({c}, {it})")
    limited = limit is not None and function.constant(limit.parts["c"]) is not None
    whole = limit.node if limit is not None and limited else call
    if needs_number(function, whole) or compared_by_callers(function, call) or caught(function, call):
        return None
    draft, stays = Draft(function), ""
    if limit is not None and limited:  # where Python compares it would be read again
        stays = "a NaN stays one, where Python's comparison may give the bound"
        bound = "max" if function.file.text(limit.node).startswith("min") else "min"
        draft.replace(limit.node, f"{{t}}.detach().{name}().clamp({bound}={{c}})", t=call.args[0], c=limit.parts["c"])
    else:
        draft.replace(call, f"{{t}}.detach().{name}()", t=call.args[0])
    return draft.fix(
        "compute it on the device",
        Safety.SUGGEST if kept_by_key(function, whole) else Safety.UNSAFE,
        "it is a tensor of the tensor's own dtype, no Python float",
        "NaN or inf comes where math raises an error",
        stays,
    )


def compared_by_callers(function: Function, call: ast.Call) -> bool:
    """Whether what a function gives is compared by Python where the file calls it, `max(1, self._rms(x))`: there it waits."""
    scope = function.scope
    given = any(isinstance(outer, ast.Return) for outer in function.around(call))
    if not given or not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return scope.name in function.file.once("compared", lambda: compared(function.file.tree))


def compared(tree: ast.Module) -> set[str]:
    """The last words of what a file calls where it compares, or asks for a truth."""
    asking = (part for n in walk(tree) for part in asked(n))
    return {name_of(n.func) for part in asking for n in walk(part) if isinstance(n, ast.Call)}


def asked(node: ast.AST) -> list[ast.expr]:
    """What a node compares or asks for its truth."""
    match node:
        case ast.Call(func=ast.Name(id="max" | "min"), args=args):
            return args
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
    return []
