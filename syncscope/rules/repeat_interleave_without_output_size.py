"""`repeat_interleave` with repeats on the device and no `output_size`.

Why it waits
------------
The result is as long as the repeats add up to. The host must know the sum to make it, so it waits until the device has
computed the repeats and everything before them. `output_size=` tells it.

What to do
----------
Say how long the result is. The host often knows: it is the number of rows of what the result is combined with (tokens, nodes,
edges: `output_size=x.shape[0]`), or the sum of what the loader counted. Where only a bound is known, pad: repeat to the bound,
and mask the rest. A wrong `output_size` is an error on the CPU, and is not checked on a GPU.

When a fix pays
---------------
In every step where the total is known, as from shapes. Not where it would have to be read from the device all the same.

Fix safety
----------
Where the repeats were made of a Python list their sum is known without asking: safe for a list that is written out, else
unsafe, because a list of one count for all elements adds up to something else. Where the result is combined with another
tensor, that one's number of rows is taken: unsafe, because it must not be one row that is spread over all.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.REPEAT_INTERLEAVE,)
SEEN_AS = ("aten::repeat_interleave",)
REWRITES = ("say_output_size",)
EXAMPLES = (
    Example(
        """
        import torch

        def owners(x: torch.Tensor, counts: torch.LongTensor):
            return torch.repeat_interleave(torch.arange(len(counts), device=x.device), counts)  # !
        """,
        instead="""
        import torch

        def owners(x: torch.Tensor, counts: torch.LongTensor):  # x has a row for each repeat
            return torch.repeat_interleave(torch.arange(len(counts), device=x.device), counts, output_size=len(x))
        """,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x.repeat_interleave(2, dim=0)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn what the repeats add up to: output_size= tells it"
