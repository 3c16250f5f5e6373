"""A tensor written through a bool mask on the device: `x[mask] = values`.

Why it waits
------------
One value is written for each true element of the mask. The host must know how many there are to line them up, so it waits
until the device has computed the mask and everything before it. One number of the host for all, `x[mask] = 0`, does not wait;
one that is on the device, `x[mask] = y.max()`, does on CUDA.

When a fix pays
---------------
Where what is written is a few operators for each element: computing them for all costs less than the wait. Not where few rows
are written and each is dear, and not for code that runs once.

Fix safety
----------
Values that are computed from `a[mask]`, element by element, and what `x[mask] += a` adds, can be computed everywhere and
chosen with `torch.where`: unsafe, because the name is bound to a new tensor where the old one was written in place (other
views of it keep their values), and because what is left out must be finite or its gradient is NaN. One class column for each
kept row is a comparison with all columns: unsafe, because a class that is out of range is then left out instead of raising.
Where one mask serves several times it is enough to look for its true elements once.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.MASK_WRITE,)
SEEN_AS = ("aten::index_put_", "aten::_index_put_impl_", "aten::nonzero")
REWRITES = (
    "choose_with_where",
    "fill_with_device_number",
    "index_once",
)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            area = torch.zeros_like(x)
            wide = x > 0
            area[wide] = (x[wide] - 1) * x[wide]  # !
            return area
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            area = torch.zeros_like(x)
            wide = x > 0
            area = torch.where(wide, (x - 1) * x, area)
            return area
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            x[x < 0] = 0
            return x
        """
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            rows = x.sum(dim=1) > 0
            x = x.clone()
            x[rows] += 1  # !
            return x
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"{view.quote(site.operand)} is a bool tensor on the device: "
        f"writing a tensor to {view.quote(site.node)} waits to learn how many rows there are"
    )
