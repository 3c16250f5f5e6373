"""`pack_padded_sequence` with lengths that are on the device.

Why it waits
------------
The shape of the packed sequence depends on the lengths, so it takes them on the host only: lengths on the device are an error,
and `lengths.cpu()`, which mends it, waits. A list of numbers that are tensors is no error: the host asks for each of them.

What to do
----------
- Lengths that the loader counted: leave them on the host, and do not move them to the device with the rest of the batch.
- Lengths that are computed from a mask or a padding token on the device: let `collate_fn` count them where it pads,
  `torch.tensor([len(s) for s in batch])`.
- Both needed: keep two, `lengths` on the host for packing and `lengths.to(device)` for masks.

When a fix pays
---------------
In every step: lengths that stay on the host save the copy back. Nothing is gained where they are computed on the device and
needed on both sides.
"""

from __future__ import annotations

from syncscope.codemod.patterns.loaders import as_loaded
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.PACK_PADDED_SEQUENCE,)
SEEN_AS = (
    "aten::_pack_padded_sequence",
    "aten::_to_copy",
    "aten::copy_",
)
REWRITES = ()
EXAMPLES = (
    Example(
        """
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        def forward(x: torch.Tensor, mask: torch.Tensor):
            lengths = mask.cuda().sum(dim=1)
            return pack_padded_sequence(x, lengths, batch_first=True)  # !
        """,
        instead="""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        def forward(x: torch.Tensor, lengths: list[int]):  # as collate_fn counted them
            return pack_padded_sequence(x, lengths, batch_first=True)
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    if as_loaded(site, view):
        return None
    if site.operand is not None and site.fact_of(site.operand).kind is Value.SEQUENCE:
        return (
            f"pack_padded_sequence asks the device for each number of {view.quote(site.operand)}: "
            "count them where the loader pads, or fetch all in one go with .tolist()"
        )
    return (
        f"pack_padded_sequence takes {view.quote(site.operand)} on the host only, and .cpu() waits: "
        "keep the loader's lengths there"
    )
