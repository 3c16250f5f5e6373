"""`pack_padded_sequence` with lengths that are on the device.

Why it waits
------------
The shape of the packed sequence depends on the lengths, so it takes them on the host only: lengths on the device are an error,
and `lengths.cpu()`, which mends it, waits.

What to do
----------
- Lengths that the loader counted: leave them on the host, and do not move them to the device with the rest of the batch.
- Lengths that are computed from a mask or a padding token on the device: let `collate_fn` count them where it pads,
  `torch.tensor([len(s) for s in batch])`.
- Both needed: keep two, `lengths` on the host for packing and `lengths.to(device)` for masks.

Fix safety
----------
Unsafe, because lengths that the loader gives are then taken as they are: they must be on the host.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._loaded import as_loaded

FAMILY = Family.LIBRARY
SEVERITY = Severity.NOTE
OPS = ("pack_padded_sequence",)
SEEN_AS = (
    "aten::_pack_padded_sequence",
    "aten::_to_copy",
    "aten::copy_",
)
EXAMPLES = (
    Example(
        """
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        def train(model, loader, device):
            for x, lengths in loader:
                x = x.to(device)
                lengths = lengths.cuda()
                packed = pack_padded_sequence(x, lengths, batch_first=True)  # !
                model(packed).sum().backward()
        """,
        """
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        def train(model, loader, device):
            for x, lengths in loader:
                x = x.to(device)
                packed = pack_padded_sequence(x, lengths, batch_first=True)
                model(packed).sum().backward()
        """,
        Safety.UNSAFE,
    ),
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
    return (
        f"pack_padded_sequence takes {view.quote(site.operand)} on the host only, and .cpu() waits: "
        "keep the loader's lengths there"
    )


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.operand, ast.Name):
        return None
    moved = function.definition(site.operand)
    move = function.op(moved.value) if moved is not None else None
    if moved is None or move is None or move.name not in ("to", "cuda") or not isinstance(move.base, ast.Name):
        return None
    if function.seen_by(moved) != [site.operand] or not function.alone(moved):
        return None
    if move.base.id != site.operand.id and function.disturbed(move.base.id, moved, site.operand):
        return None
    draft = function.draft()
    draft.remove(moved)
    if move.base.id != site.operand.id:
        draft.replace(site.operand, move.base.id)
    return draft.fix("leave the lengths on the host", Safety.UNSAFE, f"{move.base.id} must be on the host")
