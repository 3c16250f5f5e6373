"""A conversion of a tensor on the device to a sparse or nested layout.

Why it waits
------------
A sparse tensor has room for as many values as are not zero (or not duplicates, for `coalesce`). The host must know how many
there are, so it waits until the device has computed everything that was asked for before. Indices that stay the same from step
to step can be made once.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Example, Family, Severity, View

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("sparse",)
SEEN_AS = (
    "aten::_to_sparse",
    "aten::to_sparse",
    "aten::_coalesce",
    "aten::nonzero",
    "aten::_to_sparse_csr",
)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, weight: torch.Tensor):
            return torch.sparse.mm(weight.to_sparse(), x)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many values it holds"
