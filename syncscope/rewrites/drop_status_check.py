"""`torch.linalg.inv(a)` as `torch.linalg.inv_ex(a).inverse`, the form that does not check."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.linalg import WITHOUT_CHECK, called
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(a: torch.Tensor, b: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            factors, pivots = torch.linalg.lu_factor(a)  # !
            return torch.linalg.lu_solve(factors, pivots, b)
        """,
        """
        import torch

        def forward(a: torch.Tensor, b: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            factors, pivots = torch.linalg.lu_factor_ex(a)[:2]
            return torch.linalg.lu_solve(factors, pivots, b)
        """,
        Safety.SUGGEST,
        "a: finite[n, 3, 3]; b: finite[n, 3, 2]",
    ),
    Example(
        """
        import torch

        def forward(a: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return a.inverse()  # !
        """,
        """
        import torch

        def forward(a: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return torch.linalg.inv_ex(a).inverse
        """,
        Safety.SUGGEST,
        "a: finite[n, 3, 3]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or any(k.arg in ("out", None) for k in call.keywords):
        return None
    found = WITHOUT_CHECK.get(called(function, call))
    if found is None:
        return None
    name, field = found
    if not surely_tensors(function, call) or caught(function, call):
        return None
    apart = False
    match function.parent(call):
        case ast.Assign(targets=[ast.Tuple(), *_]):
            apart = True
        case ast.Attribute():
            pass
        case _ if not field:  # it has one part more, at the end
            return None
    draft = Draft(function)
    if function.dotted(call.func) is None and isinstance(call.func, ast.Attribute):
        if call.args or call.keywords:
            return None
        new = draft.part(f"torch.linalg.{name}({{a}})", a=call.func.value)
    else:
        new = draft.call(call, {call.func: draft.part(f"torch.linalg.{name}")})
    draft.replace(call, f"{{call}}.{field}" if field else "{call}[:2]" if apart else "{call}", call=new)
    return draft.fix(
        "do not check",
        Safety.SUGGEST,
        "a matrix that cannot be inverted or factored no longer raises an error, and the result is then not defined",
    )


def surely_tensors(function: Function, call: ast.Call) -> bool:
    """Whether what is factored is a tensor: objects that stand for a matrix have `cholesky` and `solve` of their own."""
    given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("A", "B", "input"))]
    if function.dotted(call.func) is None and isinstance(call.func, ast.Attribute):
        given = [call.func.value]
    facts = [function.fact(each) for each in given if not isinstance(each, ast.Constant)]
    return bool(facts) and all(f.is_tensor and f.confidence >= 3 for f in facts)
