"""`cross_entropy(x[m], t[m])` with `ignore_index`, as a suggestion: it is not proved that m is a mask of the targets."""

from __future__ import annotations

from dataclasses import replace

from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.ignore_in_cross_entropy import cross_entropy

ADDS = Adds.ROWS
BESIDE = True
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, train_mask: torch.Tensor):
            return F.cross_entropy(logits[train_mask], target[train_mask])  # !
        """,
        safety=Safety.UNSAFE,
        inputs="logits: finite[n, 4]; target: label[n] < 4; train_mask: bool[n]",
        instead="""
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, train_mask: torch.Tensor):
            return F.cross_entropy(logits, torch.where(train_mask, target, -100), ignore_index=-100)
        """,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    if cross_entropy(site, function) is not None:
        return None
    found = cross_entropy(site, function, fits=True)
    if found is None:
        return None
    changes = f"it must be a mask, with one class of the targets for each of its elements; {found.changes}"
    return replace(found, safety=Safety.SUGGEST, changes=changes)
