"""`i = nonzero(m, as_tuple=True); x[i] = number` as `x.masked_fill_(m, number)`."""

from __future__ import annotations

import ast

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
    ndim = site.fact_of(op.base).ndim
    row = positions(function, call, tupled)
    used = use(function, row or call)
    if used is None or not is_mask(site.fact_of(op.base)) or not function.pure(op.base):
        return None
    if not tupled and row is None and ndim != 1:  # one index for each dimension, side by side
        return None
    definition, index, names = used
    subscript = function.parent(index)
    assign = function.parent(subscript) if subscript is not None else None
    written = seen(function, assign, "{x:name}[{i}] = {v}")
    if written is None or written["i"] is not index or not isinstance(assign, ast.Assign):
        return None
    base, number = written["x"], written["v"]
    if not one_value(function, site.fact_of(number), number):
        return None
    if definition is not None and (
        not quiet(function, definition, assign) or changed(function, definition, assign, op.base)
    ):
        return None
    if definition is not None and not function.alone(definition):
        return None
    draft = Draft(function)
    if definition is not None:
        draft.remove(definition)
    value = function.constant(number)
    fits = same_shape(function, op.base, base)
    if fits and site.fact_of(base).is_tensor and value is not None and abs(value) <= LARGEST_HALF:
        draft.replace(assign, "{x}.masked_fill_({m}, {v})", x=base, m=op.base, v=number)
        title = "fill in place where the mask is true"
    else:
        draft.replace(assign.targets[0], "{x}[{m}]", x=base, m=op.base)
        title = "write through the mask itself"
    if row is not None or not tupled:
        if fits and ndim == 1:
            return draft.fix(title, Safety.SAFE)
        return draft.fix(title, Safety.UNSAFE, f"{function.file.text(op.base)} must have one dimension")
    if fits and ndim and names in (0, ndim):
        return draft.fix(title, Safety.SAFE)
    changes = "a mask of another shape raises an IndexError, where indices in range did not"
    if fits:
        count = f"other than {names}" if names else "no"
        changes = f"a tensor of {count} dimensions is filled instead of raising an error"
    return draft.fix(title, Safety.UNSAFE, changes)


def use(function: Function, call: ast.expr) -> tuple[ast.Assign | None, ast.expr, int] | None:
    """Where indices are used, once: the statement that names them, the index itself, and how many names there are."""
    parent = function.parent(call)
    if not isinstance(parent, ast.Assign):
        return None, call, 0
    words = function.sole_names(parent)
    reads = [n for word in words for n in function.reads(word)]
    if not words or [n.id for n in reads] != words:
        return None
    count = len(words) if isinstance(parent.targets[0], ast.Tuple) else 0
    if len(words) == 1:
        return parent, reads[0], count
    match function.parent(reads[0]):
        case ast.Tuple(elts=elements) as index if elements == reads:
            return parent, index, count
    return None
