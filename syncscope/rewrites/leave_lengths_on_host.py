"""Lengths that were moved to the device for nothing but packing, left where they were."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.writes import disturbed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

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
)


def rewrite(site: Site, function: Function) -> Fix | None:
    if not isinstance(site.operand, ast.Name):
        return None
    moved = function.reaching_definition(site.operand)
    move = function.op(moved.value) if moved is not None else None
    if moved is None or move is None or move.name not in ("to", "cuda") or not isinstance(move.base, ast.Name):
        return None
    if function.seen_by(moved) != [site.operand] or not function.alone(moved):
        return None
    if move.base.id != site.operand.id and disturbed(function, move.base.id, moved, site.operand):
        return None
    draft = Draft(function)
    draft.remove(moved)
    if move.base.id != site.operand.id:
        draft.replace(site.operand, move.base.id)
    return draft.fix("leave the lengths on the host", Safety.UNSAFE, f"{move.base.id} must be on the host")
