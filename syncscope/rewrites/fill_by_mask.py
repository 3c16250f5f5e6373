"""`i = nonzero(m, as_tuple=True); x[i] = number` as `x.masked_fill_(m, number)`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.positions import lookup, positions
from syncscope.codemod.proofs import is_mask, one_value, same_shape
from syncscope.codemod.writes import changed, quiet
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

LARGEST_HALF = 65504  # what is larger raises in masked_fill_ of half precision, where an index assignment gives inf
COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            x = x.flatten()
            x[(x > 0.5).nonzero(as_tuple=True)] = 0.25  # !
            return x
        """,
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            x = x.flatten()
            x.masked_fill_(x > 0.5, 0.25)
            return x
        """,
        Safety.SAFE,
        "x: float[...]; y: float[...]",
    ),
    Example(
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.clone()
            background = torch.nonzero(target == 9, as_tuple=True)  # !
            target[background] = -1
            return target
        """,
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.clone()
            target.masked_fill_(target == 9, -1)
            return target
        """,
        Safety.UNSAFE,
        "target: label[...]",
    ),
    Example(
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            boxes = boxes.clone()
            low, = torch.where(scores < 0.5)  # !
            boxes[low] = 0  # none of these boxes
            return boxes
        """,
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            boxes = boxes.clone()
            boxes[scores < 0.5] = 0  # none of these boxes
            return boxes
        """,
        Safety.UNSAFE,
        "boxes: float[n, 4]; scores: float[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            small = torch.nonzero(x < 0.5).squeeze(1)  # !
            x[small] = 0.25
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            x.masked_fill_(x < 0.5, 0.25)
            return x
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    found = lookup(site, function)
    if found is None:
        return None
    call, op, tupled = found
    row = positions(function, call, tupled)
    used = use(function, row or call)
    if used is None:
        return None
    subscript = function.parent(used.at)
    assign = function.parent(subscript) if subscript is not None else None
    written = seen(function, assign, "{x:name}[{i}] = {v}")
    if written is None or written["i"] is not used.at or not isinstance(assign, ast.Assign):
        return None
    base, number, mask = written["x"], written["v"], op.base
    if why := (
        _no_mask(site, function, mask)
        or _side_by_side(tupled, row, site.fact_of(mask).ndim)
        or _no_number(site, function, number)
        or _otherwise(function, used.definition, assign, mask)
    ):
        return function.declines(site.node, why)
    draft = Draft(function)
    if used.definition is not None:
        draft.remove(used.definition)
    fits, value = same_shape(function, mask, base), function.constant(number)
    if fits and site.fact_of(base).is_tensor and value is not None and abs(value) <= LARGEST_HALF:
        draft.replace(assign, "{x}.masked_fill_({m}, {v})", x=base, m=mask, v=number)
        title = "fill in place where the mask is true"
    else:
        draft.replace(assign.targets[0], "{x}[{m}]", x=base, m=mask)
        title = "write through the mask itself"
    changes = changed_by(site, function, mask, used.names, fits, one_row=row is not None or not tupled)
    return draft.fix(title, Safety.UNSAFE if changes else Safety.SAFE, changes)


def changed_by(site: Site, function: Function, mask: ast.expr, names: int, fits: bool, one_row: bool) -> str:
    """What a fix changes; "" where it is the same. `fits`: the mask surely has the shape of what is written; `one_row`: its
    positions are of one dimension."""
    ndim = site.fact_of(mask).ndim
    if one_row:
        return "" if fits and ndim == 1 else f"{function.file.text(mask)} must have one dimension"
    if not fits:
        return "a mask of another shape raises an IndexError, where indices in range did not"
    if ndim and names in (0, ndim):
        return ""
    return f"a tensor of {f'other than {names}' if names else 'no'} dimensions is filled instead of raising an error"


def _no_mask(site: Site, function: Function, mask: ast.expr) -> str:
    if not is_mask(site.fact_of(mask)):
        return f"that {function.file.quote(mask)} is a mask is not known"
    return "" if function.pure(mask) else f"{function.file.quote(mask)} cannot be computed at another place"


def _side_by_side(tupled: bool, row: ast.expr | None, ndim: int | None) -> str:
    several = not tupled and row is None and ndim != 1
    return "its positions stand side by side, one for each dimension" if several else ""


def _no_number(site: Site, function: Function, number: ast.expr) -> str:
    known = one_value(function, site.fact_of(number), number)
    return "" if known else f"nothing says that {function.file.quote(number)} is one number"


def _otherwise(function: Function, definition: ast.Assign | None, assign: ast.Assign, mask: ast.expr) -> str:
    """Why the mask may select other elements where it is written than where it was asked; "" where it does not."""
    if definition is None:
        return ""
    if not quiet(function, definition, assign) or changed(function, definition, assign, mask):
        return f"{function.file.quote(mask)} may change before it is written"
    return "" if function.alone(definition) else "something else stands on the line that names its positions"


class Used(NamedTuple):
    """Where positions are used, once."""

    definition: ast.Assign | None  # the statement that names them
    at: ast.expr  # the index itself
    names: int  # how many there are


def use(function: Function, call: ast.expr) -> Used | None:
    """Where indices are used, once: the statement that names them, the index itself, and how many names there are."""
    parent = function.parent(call)
    if not isinstance(parent, ast.Assign):
        return Used(None, call, 0)
    words = function.sole_names(parent)
    reads = [n for word in words for n in function.reads(word)]
    if not words or [n.id for n in reads] != words:
        return None
    count = len(words) if isinstance(parent.targets[0], ast.Tuple) else 0
    if len(words) == 1:
        return Used(parent, reads[0], count)
    match function.parent(reads[0]):
        case ast.Tuple(elts=elements) as index if elements == reads:
            return Used(parent, index, count)
    return None
