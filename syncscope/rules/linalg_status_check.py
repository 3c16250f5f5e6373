"""A linear algebra call that checks whether it succeeded: `torch.linalg.inv`, `solve`, `cholesky`, `eigh`, `svd`.

Why it waits
------------
The device says whether a matrix was singular, or an iteration ended, and the host reads that to raise an error: it waits until
the device has computed everything that was asked for before.

What to do
----------
- `inv`, `solve`, `cholesky`, `lu_factor`, `ldl_factor`: the `_ex` forms give the status as a tensor instead. Keep it, and look
  at it where you log: `bad |= info != 0`.
- `eigh`, `svd`, `eig` and what is built on them (`pinv`, `matrix_rank`, `cond`, `norm(ord=2)`) have no such form. Ask once for
  a batch of matrices, `torch.linalg.eigh(torch.stack(ms))`; or every n steps, as preconditioners do; or for less: the largest
  singular value by power iteration (`torch.nn.utils.parametrizations.spectral_norm`), the orthogonal factor by `qr` or
  Newton-Schulz, the log-determinant of a positive definite matrix from `cholesky_ex(a).L.diagonal().log().sum() * 2`.
- `lstsq(a, b)` and `pinv(a) @ b` of a tall matrix of full rank: `qr` and `solve_triangular`, neither of which checks.
- `inv(a) @ b` is `solve_ex(a, b).result`, which is also more exact.

Fix safety
----------
Unsafe, because a matrix that is singular, or not positive definite, no longer raises an error; the result is then not defined.
One call for many matrices is suggested, not applied, because they must all have one shape.
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
WITHOUT_CHECK = {  # the form that does not check, and its field that is the result
    "torch.linalg.inv": ("inv_ex", "inverse"),
    "torch.inverse": ("inv_ex", "inverse"),
    "torch.linalg.solve": ("solve_ex", "result"),
    "torch.linalg.cholesky": ("cholesky_ex", "L"),
    "torch.cholesky": ("cholesky_ex", "L"),
    "torch.linalg.lu_factor": ("lu_factor_ex", ""),
    "torch.linalg.ldl_factor": ("ldl_factor_ex", ""),
}
METHODS = {"inverse": "torch.inverse", "cholesky": "torch.cholesky"}  # of a tensor: the same functions
OF_A_BATCH = {  # whether the result is one tensor, or a tuple of them
    "torch.linalg.eigh": False, "torch.linalg.eig": False, "torch.linalg.svd": False, "torch.linalg.eigvalsh": True,
    "torch.linalg.svdvals": True, "torch.linalg.eigvals": True, "torch.linalg.pinv": True, "torch.linalg.cond": True,
}  # fmt: skip
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
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return a.inverse()  # !
        """,
        """
        import torch

        def forward(a: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return torch.linalg.inv_ex(a).inverse
        """,
        Safety.UNSAFE,
        "a: finite[n, 3, 3]",
    ),
    Example(
        """
        import torch

        def sizes(a: torch.Tensor, b: torch.Tensor):
            layers = [a, b]
            return [torch.linalg.svdvals(layer) for layer in layers]  # !
        """,
        """
        import torch

        def sizes(a: torch.Tensor, b: torch.Tensor):
            layers = [a, b]
            return list(torch.linalg.svdvals(torch.stack(tuple(layers))).unbind())
        """,
        Safety.SUGGEST,
        "a: finite[3, 2]; b: finite[3, 2]",
    ),
    Example(
        """
        import torch

        def directions(layers: list[torch.Tensor]):
            return [torch.linalg.eigh(layer) for layer in layers]  # !
        """,
        """
        import torch

        def directions(layers: list[torch.Tensor]):
            return list(zip(*torch.linalg.eigh(torch.stack(tuple(layers)))))
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def forward(a: torch.Tensor):
            return torch.linalg.eigh(a).eigenvalues  # !
        """
    ),
    Example(
        """
        import torch

        def fit(a: torch.Tensor, b: torch.Tensor):
            a = torch.cat((a, torch.eye(2, dtype=a.dtype, device=a.device)))
            return torch.linalg.lstsq(a, b).solution  # !
        """,
        inputs="a: finite[n + 1, 2]; b: finite[n + 3, m + 1]",
        instead="""
        import torch

        def fit(a: torch.Tensor, b: torch.Tensor):
            a = torch.cat((a, torch.eye(2, dtype=a.dtype, device=a.device)))
            q, r = torch.linalg.qr(a)
            return torch.linalg.solve_triangular(r, q.mT @ b, upper=True)
        """,
    ),
    Example(
        """
        import torch

        def log_volume(a: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return torch.linalg.eigvalsh(a).log().sum(dim=-1)  # !
        """,
        inputs="a: finite[n, 3, 3]",
        instead="""
        import torch

        def log_volume(a: torch.Tensor):
            a = a @ a.mT + torch.eye(3, dtype=a.dtype, device=a.device)
            return torch.linalg.cholesky_ex(a).L.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1) * 2
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    text = f"{view.quote(site.node)} reads whether it succeeded, and waits for the answer"
    name = called(site.node, view.function(site))
    if name in WITHOUT_CHECK:
        return f"{text}: torch.linalg.{WITHOUT_CHECK[name][0]} does not"
    if name == "torch.linalg.lstsq":
        return f"{text}: qr and solve_triangular do not"
    return f"{text}: there is no form that does not, so ask once for a batch, or every n steps"


def called(node: ast.AST, function: Function) -> str:
    """The full name of what is called; of a method, that of the same function."""
    if not isinstance(node, ast.Call):
        return ""
    method = METHODS.get(node.func.attr, "") if isinstance(node.func, ast.Attribute) else ""
    return function.dotted(node.func) or method


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or any(k.arg in ("out", None) for k in call.keywords):
        return None
    return of_a_batch(function, call) or unchecked(function, call)


def unchecked(function: Function, call: ast.Call) -> Fix | None:
    """The form that does not check."""
    found = WITHOUT_CHECK.get(called(call, function))
    if found is None:
        return None
    name, field = found
    outer = function.parent(call)
    apart = isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple)
    if not field and not apart and not isinstance(outer, ast.Attribute):  # it has one part more, at the end
        return None
    draft = function.draft()
    if function.dotted(call.func) is None and isinstance(call.func, ast.Attribute):
        if call.args or call.keywords:
            return None
        new = draft.part(f"torch.linalg.{name}({{a}})", a=call.func.value)
    else:
        new = draft.call(call, {call.func: draft.part(f"torch.linalg.{name}")})
    draft.replace(call, f"{{call}}.{field}" if field else "{call}[:2]" if apart else "{call}", call=new)
    return draft.fix(
        "do not check",
        Safety.UNSAFE,
        "a matrix that cannot be inverted or factored no longer raises an error, and the result is then not defined",
    )


def of_a_batch(function: Function, call: ast.Call) -> Fix | None:
    """`[eigh(m) for m in ms]` as one call for all."""
    loop, single = function.parent(call), OF_A_BATCH.get(called(call, function))
    if single is None or not isinstance(loop, ast.ListComp) or loop.elt is not call or len(loop.generators) != 1:
        return None
    each, matrix = loop.generators[0], call.args[0] if call.args else None
    if each.ifs or each.is_async or matrix is None or not isinstance(each.target, ast.Name):
        return None
    if any(function.same_name(n, each.target) for a in (*call.args[1:], *call.keywords) for n in ast.walk(a)):
        return None
    draft = function.draft()
    whole = "torch.stack(tuple({all}))"
    if not function.same_name(matrix, each.target):
        whole = "torch.stack([{m} for {x} in {all}])"
    batch = draft.part(whole, all=each.iter, m=matrix, x=each.target.id)
    new = draft.call(call, {matrix: batch})
    draft.replace(loop, "list({call}.unbind())" if single else "list(zip(*{call}))", call=new)
    plain = "" if single else "; each result is a plain tuple"
    return draft.fix(
        "ask once for all", Safety.SUGGEST, f"there must be at least one, and all must have one shape{plain}"
    )
