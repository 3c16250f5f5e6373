"""A bool tensor on the device as an index: `x[mask]`.

Why it waits
------------
The result has a row for each true element of the mask. The host must know how many there are to make it, so it waits until
the device has computed the mask and everything before it.

What to do
----------
- What ends in a number (a sum, a mean, a loss) needs no selection: compute all, and leave out with `where`, `masked_fill`,
  `ignore_index` or a weight of zero. Not with `x * mask`: NaN times zero is NaN.
- What goes on as rows (a head that runs on the foreground only) is a true dependency. Look for the rows once,
  `rows = mask.nonzero().squeeze(1)`, and use them wherever the mask was used: one wait, not one for each use.
- Where a bound is known, keep a fixed number of rows: `topk(k)` of the mask, or `nonzero_static(mask, size=k)`, and carry
  which of them count.

Fix safety
----------
Most selections end in a reduction, and that can be computed over everything with a neutral value where the mask is false.
What differs is said with each fix: a sum taken in another order differs in its last bits; an empty selection gives NaN from
`mean` as before, but -inf from `max` instead of an error; what is left out must be finite, or gradients become NaN where
indexing gave zero. `any` and `all` are safe. A loss with `ignore_index` is the same loss. Where one mask serves several
times it is enough to look for its true elements once: safe where all shapes are known to fit. The fixed shape does the work
of all rows: if a mask keeps very few and the work is heavy, one wait may be cheaper.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import (
    Example,
    Family,
    Function,
    Severity,
    View,
    _cross_entropy,
    _fixed_rows,
    _hardest,
    _index_once,
    _loss_per_element,
    _masked_reduction,
    _masked_write,
)
from syncscope.rules._class_columns import all_columns
from syncscope.rules._cross_entropy import cross_entropy
from syncscope.rules._fixed_rows import selected
from syncscope.rules._hardest import hardest
from syncscope.rules._index_once import indexed_once
from syncscope.rules._loss_per_element import per_element
from syncscope.rules._masked_reduction import reduced, supposed
from syncscope.rules._masked_write import chosen, one_column

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("mask_read",)
SEEN_AS = ("aten::index", "aten::nonzero")
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            keep = target != IGNORE
            return F.cross_entropy(logits[keep], target[keep])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return F.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=IGNORE)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
    ),
    *_cross_entropy.OF_MASKS,
    *_loss_per_element.EXAMPLES,
    *_masked_reduction.EXAMPLES,
    *_index_once.EXAMPLES,
    *_masked_write.OF_READS,
    *_hardest.OF_MASKS,
    *_fixed_rows.OF_MASKS,
)


def message(site: Site, view: View) -> str | None:
    mask, taken = view.quote(site.operand), view.quote(site.node)
    return f"{mask} is a bool tensor on the device: {taken} waits to learn how many rows it keeps"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    return (
        alone(site, function)
        or selected(site, function)
        or indexed_once(site, function, with_own_fix(function))
        or supposed(site, function)
    )


def alone(site: Site, function: Function) -> Fix | None:
    """The fix that needs no other site."""
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.ctx, ast.Load):
        return None
    return (
        cross_entropy(site, function)
        or per_element(site, function)
        or reduced(site, function, taken.value, taken.slice)
        or chosen(site, function)
        or one_column(site, function)
        or all_columns(site, function)
        or hardest(site, function)
    )


def with_own_fix(function: Function) -> frozenset[int]:
    """The selections of a function that become something better than an index."""
    if function.mended is None:
        function.mended = frozenset(own_fixes(function))
    return function.mended


def own_fixes(function: Function) -> set[int]:
    """As `with_own_fix`, worked out."""
    found = {id(s.node) for s in function.sites if s.op == "mask_read" and alone(s, function) is not None}
    writes = (s for s in function.sites if s.op == "mask_write")
    return found | {
        id(s.node) for s in writes if chosen(s, function) or one_column(s, function) or all_columns(s, function)
    }
