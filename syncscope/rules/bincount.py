"""`bincount` of a tensor on the device.

Why it waits
------------
The result has as many bins as the largest value needs. The host must know that value to make it, so it waits until the device
has computed everything that was asked for before. A `minlength` alone does not help: there may be more.

When a fix pays
---------------
Where it runs in every step behind work that takes longer than the host needs to queue the rest. `minlength` alone does not
help: the largest value is read in any case. Not for a histogram once an epoch, and not for many values, the pixels of a batch
of images say: ones that are added up are faster for some ten thousand values, and from about a million on they take several
times as long as `bincount`. Where the values are known to be so many, no fix is offered.

Fix safety
----------
With a `minlength` that is large enough the bins can be counted in a fixed shape, by adding ones at the values. Unsafe, because
a value of `minlength` or more is then an error instead of one more bin: on CUDA an assertion on the device, after which the
process can use the device no more. Only where no value can be as large.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.BINCOUNT,)
SEEN_AS = ("aten::bincount",)
REWRITES = ("count_in_given_bins",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(label: torch.LongTensor):
            return torch.bincount(label)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn the largest value, which says how many bins there are"
