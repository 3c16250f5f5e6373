"""`nonzero`, `argwhere` or one-argument `where` of a tensor on the device.

Why it waits
------------
The result has a row for each nonzero element. The host must know how many there are to make it, so it waits until the
device has computed everything that was asked for before.

Fix safety
----------
Indices that only serve to write one number are not needed: `x[mask] = number` is filled in place without a wait, and so is
`x.masked_fill_(mask, number)`: the same values and gradients. Safe where the shapes are known to fit and the number of
dimensions is known, else unsafe, because a tensor without dimensions is then filled instead of raising. Where only the count
is used, `count_nonzero` gives it as a tensor that stays on the device: unsafe, because code that needs a Python int will then
read it. The first k rows, `nonzero(m)[:k]`, can be had in a fixed shape from `nonzero_static`; so can all of them where the
mask was made with a known number of true elements. Both are suggested, not applied: rows that are missing hold -1. One class
column of each row, `loss[rows, label[rows]] = f(...)`, can be computed for all columns and chosen: unsafe, and more work where
few rows are kept.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View, _hardest, _masked_loss, _rows
from syncscope.rules._class_columns import all_columns
from syncscope.rules._function import Op
from syncscope.rules._hardest import hardest
from syncscope.rules._lengths import length, number_of_elements
from syncscope.rules._masked_loss import of_rows
from syncscope.rules._positions import first, known_number, padded, positions
from syncscope.rules._proofs import is_mask, one_value, same_shape
from syncscope.rules._rows import unrowed

FAMILY = Family.SHAPE
SEVERITY = Severity.WARNING
OPS = ("nonzero", "argwhere", "where")
SEEN_AS = ("aten::nonzero", "aten::argwhere", "aten::nonzero_numpy")
LARGEST_HALF = 65504  # what is larger raises in masked_fill_ of half precision, where an index assignment gives inf
EXAMPLES = (
    Example(
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            rows, columns = torch.nonzero(target == 9, as_tuple=True)  # !
            target[rows, columns] = -1
            return target
        """,
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            target.masked_fill_(target == 9, -1)
            return target
        """,
        Safety.UNSAFE,
        "target: label[n, h, w]",
    ),
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

        def forward(scores: torch.Tensor):
            found = len(torch.nonzero(scores > 0))  # !
            return scores.sum() / found
        """,
        """
        import torch

        def forward(scores: torch.Tensor):
            found = (scores > 0).count_nonzero()
            return scores.sum() / found
        """,
        Safety.UNSAFE,
        "scores: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.nonzero(scores > 0)[:8]  # !
        """,
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.nonzero_static(scores > 0, size=8)
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor, k: int):
            found = (scores > 0).nonzero(as_tuple=True)[0]  # !
            found = found[:k]
            return x[found]
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor, k: int):
            found = torch.nonzero_static(scores > 0, size=k)[:, 0]
            return x[found]
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            best = torch.zeros_like(x, dtype=torch.bool)
            best.scatter_(0, x.topk(3).indices, True)
            return x[best.nonzero().squeeze(1)] * 2  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            best = torch.zeros_like(x, dtype=torch.bool)
            best.scatter_(0, x.topk(3).indices, True)
            return x[torch.nonzero_static(best, size=3).squeeze(1)] * 2
        """,
        Safety.SUGGEST,
        "x: finite[3 + n]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows, columns = F.one_hot(label, 4).nonzero(as_tuple=True)  # !
            return x[rows, columns] + 1
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows, columns = torch.nonzero_static(F.one_hot(label, 4), size=label.numel()).unbind(1)
            return x[rows, columns] + 1
        """,
        Safety.SUGGEST,
        "x: finite[n, 4]; label: index[n] < 4",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def quality_loss(pred: torch.Tensor, label: torch.LongTensor, score: torch.Tensor):
            prob = pred.sigmoid()
            loss = F.binary_cross_entropy_with_logits(pred, torch.zeros_like(pred), reduction="none") * prob.pow(2)
            good = (label >= 0) & (label < pred.size(1))
            pos = good.nonzero().squeeze(1)  # !
            pos_label = label[pos].long()
            scale = score[pos] - prob[pos, pos_label]
            loss[pos, pos_label] = F.binary_cross_entropy_with_logits(
                pred[pos, pos_label], score[pos], reduction="none"
            ) * scale.abs().pow(2)
            return loss.sum(dim=1)
        """,
        """
        import torch
        import torch.nn.functional as F

        def quality_loss(pred: torch.Tensor, label: torch.LongTensor, score: torch.Tensor):
            prob = pred.sigmoid()
            loss = F.binary_cross_entropy_with_logits(pred, torch.zeros_like(pred), reduction="none") * prob.pow(2)
            good = (label >= 0) & (label < pred.size(1))
            hit = good[:, None] & (label[:, None] == torch.arange(loss.shape[1], device=loss.device))
            loss = torch.where(hit, F.binary_cross_entropy_with_logits(
                pred, score[:, None].expand_as(loss), reduction="none"
            ) * (score[:, None] - prob).abs().pow(2), loss)
            return loss.sum(dim=1)
        """,
        Safety.UNSAFE,
        "pred: finite[n, 4]; label: label[n] < 4; score: finite[n]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor):
            x = x.flatten()
            found = torch.nonzero(x > 0).squeeze(1)  # !
            return F.pad(found, (0, 30 - found.numel()), value=-1)
        """,
        """
        import torch
        import torch.nn.functional as F

        def forward(x: torch.Tensor):
            x = x.flatten()
            return torch.nonzero_static(x > 0, size=30, fill_value=-1)[:, 0]
        """,
        Safety.SUGGEST,
        "x: finite[n, m]",
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
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.where(scores > 0, scores, 0.0)
        """
    ),
    *_hardest.OF_ROWS,
    *_masked_loss.OF_ROWS,
    *_rows.EXAMPLES,
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many elements are nonzero"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.sure < 2:  # a guess is no ground to change code on, but what is done with it may be
        return hardest(site, function) or of_rows(site, function) or all_columns(site, function)
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.Call):
        return None
    return (
        hardest(site, function)
        or filled(site, function, site.node, op)
        or counted(site, function, site.node, op)
        or first(site, function, site.node, op, as_tuple(site, op))
        or padded(function, site.node, op, as_tuple(site, op))
        or all_columns(site, function)
        or of_rows(site, function)
        or known_number(site, function, site.node, op, as_tuple(site, op))
        or unrowed(site, function)
    )


def as_tuple(site: Site, op: Op) -> bool:
    """Whether the result is a tuple of index tensors, one for each dimension."""
    flag = op.keywords.get("as_tuple")
    return site.op == "where" or (isinstance(flag, ast.Constant) and flag.value is True)


def filled(site: Site, function: Function, call: ast.Call, op: Op) -> Fix | None:
    """`index = nonzero(m, as_tuple=True); x[index] = number` writes where the mask is true."""
    tupled, ndim = as_tuple(site, op), site.fact_of(op.base).ndim
    row = positions(function, call, tupled)
    found = use(row or call, function)
    if found is None or not is_mask(site.fact_of(op.base)) or not function.pure(op.base):
        return None
    if not tupled and row is None and ndim != 1:  # one index for each dimension, side by side
        return None
    definition, index, names = found
    subscript = function.parent(index)
    assign = function.parent(subscript) if subscript is not None else None
    if (
        not isinstance(subscript, ast.Subscript)
        or subscript.slice is not index
        or not isinstance(subscript.value, ast.Name)
        or not isinstance(assign, ast.Assign)
        or assign.targets != [subscript]
        or not one_value(function, site.fact_of(assign.value), assign.value)
    ):
        return None
    if definition is not None and (
        not function.quiet(definition, assign) or undone(function, op.base, definition, assign)
    ):
        return None
    if definition is not None and not function.alone(definition):
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    base, value = subscript.value, function.constant(assign.value)
    fits = same_shape(function, op.base, base)
    if fits and site.fact_of(base).is_tensor and value is not None and abs(value) <= LARGEST_HALF:
        draft.replace(assign, "{x}.masked_fill_({m}, {v})", x=base, m=op.base, v=assign.value)
        title = "fill in place where the mask is true"
    else:
        draft.replace(subscript, "{x}[{m}]", x=base, m=op.base)
        title = "write through the mask itself"
    if row is not None or not tupled:
        if fits and ndim == 1:
            return draft.fix(title, Safety.SAFE)
        return draft.fix(title, Safety.UNSAFE, f"{function.view.text(op.base)} must have one dimension")
    if fits and ndim and names in (0, ndim):
        return draft.fix(title, Safety.SAFE)
    changes = "a mask of another shape raises an IndexError, where indices in range did not"
    if fits:
        count = f"other than {names}" if names else "no"
        changes = f"a tensor of {count} dimensions is filled instead of raising an error"
    return draft.fix(title, Safety.UNSAFE, changes)


def use(call: ast.expr, function: Function) -> tuple[ast.Assign | None, ast.expr, int] | None:
    """Where indices are used, once: the statement that names them, the index itself, and how many names there are."""
    parent = function.parent(call)
    if not isinstance(parent, ast.Assign):
        return None, call, 0
    if len(parent.targets) != 1:
        return None
    target = parent.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    words = [n.id for n in names if isinstance(n, ast.Name)]
    if len(words) != len(names) or any(len(function.binds(word)) != 1 for word in words):
        return None
    reads = [n for word in words for n in function.reads(word)]
    if [n.id for n in reads] != words:
        return None
    index: ast.AST | None = reads[0] if len(words) == 1 else function.parent(reads[0])
    if len(words) > 1 and (not isinstance(index, ast.Tuple) or index.elts != reads):
        return None
    assert isinstance(index, ast.expr)
    return parent, index, len(words) if isinstance(target, ast.Tuple) else 0


def undone(function: Function, expr: ast.expr, start: ast.stmt, end: ast.stmt) -> bool:
    """Whether anything that an expression is made of may have changed between two statements."""
    names = {n.id for n in ast.walk(expr) if isinstance(n, ast.Name)}
    return any(function.disturbed(name, start, end) for name in names)


def counted(site: Site, function: Function, call: ast.Call, op: Op) -> Fix | None:
    """Only the number of rows is used: `len(nonzero(m))`, `nonzero(m).shape[0]`, `nonzero(m).numel()`."""
    rows: ast.expr = call
    if as_tuple(site, op):
        parent = function.parent(call)
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
            return None
        rows = parent
    rows, definition = function.carried(rows)
    ndim = site.fact_of(op.base).ndim
    factor = 1 if as_tuple(site, op) else ndim
    count = length(function, rows) or (number_of_elements(function, rows) if factor else None)
    if count is None or ndim == 0 or (as_tuple(site, op) and ndim is None):
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    if number_of_elements(function, rows) is count and factor != 1:
        draft.replace(count, f"{{m}}.count_nonzero() * {factor}", m=op.base)
    else:
        draft.replace(count, "{m}.count_nonzero()", m=op.base)
    return draft.fix(
        "count on the device",
        Safety.UNSAFE,
        "the count is a 0-d tensor that stays on the device, no Python int: what needs an int will read it",
    )
