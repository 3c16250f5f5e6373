"""A conversion of a tensor on the device to a sparse or nested layout.

Why it waits
------------
A sparse tensor has room for as many values as are not zero (or not duplicates, for `coalesce`). The host must know how many
there are, so it waits until the device has computed everything that was asked for before.

What to do
----------
- A product with a sparse matrix given by its rows, columns and values is a gather and an `index_add`: no tensor of a sparse
  layout is needed, and duplicates add up as `coalesce` adds them.
- Indices that stay the same from step to step, of a graph or of a pruned weight: convert once, before the loop or in
  `__init__` (`self.register_buffer("weight", weight.to_sparse_csr())`), and write only the values in the step.
- Indices that are sorted and distinct by the way they are made: `torch.sparse_coo_tensor(..., is_coalesced=True)` needs no
  `coalesce`.
- Sequences of different lengths: lengths that the loader counted, and `nested_tensor_from_jagged(values, offsets,
  min_seqlen=..., max_seqlen=...)`, which need not be read then.

When a fix pays
---------------
Where the pattern stays the same over many steps: convert once. Where it changes with the data, the number of elements must be
learnt, and the wait stays.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.SPARSE,)
SEEN_AS = (
    "aten::_to_sparse",
    "aten::to_sparse",
    "aten::_coalesce",
    "aten::coalesce",
    "aten::nonzero",
    "aten::_to_sparse_csr",
)
EXAMPLES = (
    Example(
        """
        import torch

        def spread(x: torch.Tensor, rows: torch.LongTensor, columns: torch.LongTensor, values: torch.Tensor):
            graph = torch.sparse_coo_tensor(torch.stack((rows, columns)), values, (len(x), len(x))).coalesce()  # !
            return torch.sparse.mm(graph, x)
        """,
        inputs="x: finite[n + 1, m + 1]; rows: index[k] < n; columns: index[k] < n; values: finite[k]",
        instead="""
        import torch

        def spread(x: torch.Tensor, rows: torch.LongTensor, columns: torch.LongTensor, values: torch.Tensor):
            return torch.zeros_like(x).index_add(0, rows, values[:, None] * x[columns])
        """,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, weight: torch.Tensor):
            return torch.sparse.mm(weight.to_sparse(), x)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    taken = view.quote(site.node)
    return f"{taken} waits to learn how many values it holds: convert once, before the loop, or use index_add"
