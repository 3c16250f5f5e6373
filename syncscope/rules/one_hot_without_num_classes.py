"""`one_hot` of a tensor on the device without `num_classes`.

Why it waits
------------
There is a column for each class up to the largest that occurs. The host must know that one to make them, so it waits until the
device has computed everything that was asked for before. `num_classes=` tells it.

When a fix pays
---------------
Always in the step: the number of classes is known to the program, and reading the largest label waits. Nothing is gained on
labels that are still on the host.

Fix safety
----------
The classes of an `argmax` over a dimension are at most as many as that dimension has elements. Unsafe, because there are then
always that many columns, also where the last classes do not occur, which is mostly what was meant. The same holds for labels
that are clamped or taken modulo a number. Where the code around has a `num_classes`, that is suggested, not applied.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.ONE_HOT,)
SEEN_AS = ("aten::one_hot",)
REWRITES = ("say_num_classes",)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(label: torch.LongTensor):
            return F.one_hot(label)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn the largest class: num_classes= tells it"
