"""`ctc_loss` with lengths that are on the device.

Why it waits
------------
The host works out sizes and checks from the lengths. Lengths that the loader counted can be given as they are, on the host, or
as tuples.

What to do
----------
Move the batch to the device without its lengths. Lengths that the network changes (a convolution with a stride) can be worked
out on the host as well, from the numbers that the loader counted: `(lengths - kernel) // stride + 1`.

When a fix pays
---------------
Always in training: there are several reads in each call, and the loader knows the lengths. Not where the lengths are computed
on the device and CTC is most of the step.
"""

from __future__ import annotations

from syncscope.codemod.patterns.loaders import as_loaded
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.CTC_LOSS,)
SEEN_AS = (
    "aten::_ctc_loss",
    "aten::item",
    "aten::_to_copy",
)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def train(model, loader, device):
            for x, target, lengths, sizes in loader:
                scores = model(x.to(device)).log_softmax(dim=2)
                lengths = lengths.cuda()
                F.ctc_loss(scores, target.to(device), lengths, sizes).backward()  # !
        """,
        instead="""
        import torch
        import torch.nn.functional as F

        def train(model, loader, device):
            for x, target, lengths, sizes in loader:
                scores = model(x.to(device)).log_softmax(dim=2)
                F.ctc_loss(scores, target.to(device), lengths, sizes).backward()
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    if as_loaded(site, view):
        return None
    return f"ctc_loss needs the lengths on the host, and waits for {view.quote(site.operand)}: keep the loader's lengths there"
