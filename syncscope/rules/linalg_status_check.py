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

When a fix pays
---------------
For many small matrices in every step, where the wait is longer than the work. Not for one large decomposition, which takes
longer than any wait, and not where an error that says what is singular is needed.

Fix safety
----------
Suggested, not applied, because a matrix that is singular, or not positive definite, no longer raises an error; the result is
then not defined.
"""

from __future__ import annotations

from syncscope.codemod.patterns.linalg import WITHOUT_CHECK, called
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.LINALG_CHECK,)
SEEN_AS = ("aten::_linalg_check_errors", "aten::linalg_inv", "aten::linalg_solve", "aten::linalg_cholesky")
REWRITES = ("drop_status_check",)
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
        Safety.SUGGEST,
        "a: finite[n, 3, 3]; b: finite[n, 3, 2]",
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
    name = called(view.function(site), site.node)
    if name in WITHOUT_CHECK:
        return f"{text}: torch.linalg.{WITHOUT_CHECK[name][0]} does not"
    if name == "torch.linalg.lstsq":
        return f"{text}: qr and solve_triangular do not"
    return f"{text}: there is no form that does not, so ask once for a batch, or every n steps"
