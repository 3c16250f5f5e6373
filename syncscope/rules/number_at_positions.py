"""A number written at integer positions of a tensor, or at one element: `x[i] = 1.0`, `x[0, 0] = 1.0`.

Why it waits
------------
On CUDA the number becomes a tensor of the host first, which is copied to the device, and the host waits for the copy, which
comes after everything that was asked for before. What is filled does not wait: rows and slices (`x[0] = 1.0`, `x[:, 0] = 1.0`)
and what a bool mask selects (`x[mask] = 1.0`) take the number as an argument of their kernel. On the CPU and on the OpenCL
backends there is no such copy.

What to do
----------
- `x.index_fill_(0, i, 1.0)` takes the number as an argument of its kernel, as a fill does. `i` is int64 and has one dimension.
- One column of each row, `x[torch.arange(n), label] = 1.0`, is `x.scatter_(1, label[:, None], 1.0)`.
- Several indices: `x[i, j] = x.new_ones(())` makes the number on the device. One element: `x[0, 0].fill_(1.0)`.
- Positions that were looked for, `i = mask.nonzero()`, are better not looked for: `x.masked_fill_(mask, 1.0)`.
- A value that many steps write is made once, before the loop.

When a fix pays
---------------
In every step, and on CUDA: other backends may not wait. Nothing is gained where the tensor is on the host, or written once.

Fix safety
----------
Safe at several indices and of one element: the same values, gradients, dtype and errors, for every dtype, also of an index that
is out of range, negative or that names a place twice. Unsafe where the number is a name, because it may be a numpy number or a
tensor after all, and what `index_fill_` and `scatter_` ask of their index is said. None is offered where a single index may be
a mask, which would be filled without waiting; where an index is on the host, which is copied all the same and comes first, but
for the rows of `torch.arange(n)`, which go away; where the number may be a tensor; and where the function itself looks for the
positions, which a mask does without.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.NUMBER_WRITE,)
SEEN_AS = ("aten::index_put_", "aten::_index_put_impl_", "aten::copy_", "aten::_to_copy", "aten::to")
REWRITES = ("make_number_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            mask, i = x > 0, y.long().flatten()
            x = x.clone()
            x[mask] = 0
            x[i] = y[0]
            x[i] += 1
            return x
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"the number written to {view.quote(site.node)} is copied to the device (CUDA), and the host waits for the copy"
    )


def certain(site: Site, function: Function) -> bool:
    return True  # what is filled holds the same, wherever it lives
