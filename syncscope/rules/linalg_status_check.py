"""A linear algebra call that checks whether it succeeded: `torch.linalg.inv`, `solve`, `cholesky`, `eigh`, `svd`.

Why it waits
------------
The device says whether a matrix was singular, and the host reads that to raise an error: it waits until the device has
computed everything that was asked for before. The `_ex` forms give the status as a tensor instead.

Fix safety
----------
Unsafe, because a matrix that is singular, or not positive definite, no longer raises an error; the result is then not defined.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.WARNING
OPS = ("linalg_check",)
SEEN_AS = ("aten::_linalg_check_errors", "aten::linalg_inv", "aten::linalg_solve", "aten::linalg_cholesky")
WITHOUT_CHECK = {
    "torch.linalg.inv": ("inv_ex", "inverse"),
    "torch.inverse": ("inv_ex", "inverse"),
    "torch.linalg.solve": ("solve_ex", "result"),
    "torch.linalg.cholesky": ("cholesky_ex", "L"),
    "torch.cholesky": ("cholesky_ex", "L"),
    "torch.linalg.lu_factor": ("lu_factor_ex", ""),
    "torch.linalg.ldl_factor": ("ldl_factor_ex", ""),
}
EXAMPLES = (
    Example(
        """
        import torch

        def forward(a: torch.Tensor, b: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            factor = torch.linalg.cholesky(a)  # !
            return factor @ torch.linalg.inv(a) @ torch.linalg.solve(a, b)  # !
        """,
        """
        import torch

        def forward(a: torch.Tensor, b: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            factor = torch.linalg.cholesky_ex(a).L
            return factor @ torch.linalg.inv_ex(a).inverse @ torch.linalg.solve_ex(a, b).result
        """,
        Safety.UNSAFE,
        "a: finite[n, 3, 3]; b: finite[n, 3, 2]",
    ),
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
        Safety.UNSAFE,
        "a: finite[n, 3, 3]; b: finite[n, 3, 2]",
    ),
    Example(
        """
        import torch

        def forward(a: torch.Tensor):
            return torch.linalg.eigh(a).eigenvalues  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} reads whether it succeeded, and waits for the answer"


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    found = WITHOUT_CHECK.get(function.dotted(call.func) or "") if isinstance(call, ast.Call) else None
    if found is None or not isinstance(call, ast.Call) or any(k.arg in ("out", None) for k in call.keywords):
        return None
    name, field = found
    outer = function.parent(call)
    apart = isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple)
    if not field and not apart and not isinstance(outer, ast.Attribute):  # it has one part more, at the end
        return None
    draft = function.draft()
    new = draft.call(call, {call.func: f"torch.linalg.{name}"})
    draft.replace(call, f"{{call}}.{field}" if field else "{call}[:2]" if apart else "{call}", call=new)
    return draft.fix(
        "do not check",
        Safety.UNSAFE,
        "a matrix that cannot be inverted or factored no longer raises an error, and the result is then not defined",
    )
