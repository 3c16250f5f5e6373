"""Rows of which it is known how many there are: `nonzero_static` has a fixed shape."""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function, Op
from syncscope.rules._positions import part_of, positions

COMPLETED = "there are always that many rows: those that are missing hold -1, which as an index is the last row"
DISTINCT = "{0} must name different elements: where it names one twice, a row is missing and holds -1"
OF_NONZERO = (
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
)
OF_MASKS = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[chosen] * 2  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[torch.nonzero_static(chosen, size=3)[:, 0]] * 2
        """,
        Safety.SUGGEST,
        "x: finite[3 + n]",
    ),
)


def first(site: Site, function: Function, call: ast.Call, op: Op, tupled: bool) -> Fix | None:
    """`nonzero(m)[:k]` has at most k rows, and may be given a name before it is cut."""
    flag = op.keywords.get("as_tuple")
    if op.args or op.keywords.keys() - {"as_tuple"} or not (tupled or flag is None or isinstance(flag, ast.Constant)):
        return None
    row = positions(function, call, tupled)
    if tupled and row is None:
        return None
    used, definition = function.carried(row or call)
    cut = function.parent(used)
    if not isinstance(cut, ast.Subscript) or cut.value is not used or not isinstance(cut.slice, ast.Slice):
        return None
    size = cut.slice.upper
    if cut.slice.lower is not None or cut.slice.step is not None or size is None or not a_size(function, size):
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    static = draft.part("torch.nonzero_static({m}, size={k})", m=op.base, k=size)
    if tupled:
        draft.replace(cut, "{s}[:, 0]", s=static)
    else:
        draft.replace(cut, "{s}", s=static if row is None else draft.swapped(row, {call: static}))
    return draft.fix("take a fixed number of rows", Safety.SUGGEST, COMPLETED)


def padded(function: Function, call: ast.Call, op: Op, tupled: bool) -> Fix | None:
    """`i = nonzero(m).squeeze(1)`, then `F.pad(i, (0, n - len(i)), value=-1)`: there are n."""
    row = positions(function, call, tupled)
    assign = function.parent(row) if row is not None else None
    uses = function.seen_by(assign) if isinstance(assign, ast.Assign) and assign.value is row else []
    if len(uses) != 2 or not isinstance(assign, ast.Assign) or row is None:
        return None
    pad = function.parent(uses[0])
    if not isinstance(pad, ast.Call) or function.dotted(pad.func) != "torch.nn.functional.pad" or len(pad.args) != 2:
        return None
    widths, fill = pad.args[1], next((k.value for k in pad.keywords if k.arg == "value"), None)
    if len(pad.keywords) != 1 or fill is None or not isinstance(function.constant(fill), int):
        return None
    missing = widths.elts[1] if isinstance(widths, (ast.Tuple, ast.List)) and len(widths.elts) == 2 else None
    if not isinstance(missing, ast.BinOp) or not isinstance(missing.op, ast.Sub) or not a_size(function, missing.left):
        return None
    if uses[1] not in ast.walk(missing.right) or not isinstance(missing.right, (ast.Call, ast.Subscript)):
        return None
    names = {n.id for n in ast.walk(op.base) if isinstance(n, ast.Name)}
    if (
        not function.pure(op.base)
        or not function.alone(assign)
        or any(function.disturbed(n, assign, pad) for n in names)
    ):
        return None
    draft = function.draft()
    draft.remove(assign)
    static = draft.part("torch.nonzero_static({m}, size={n}, fill_value={f})", m=op.base, n=missing.left, f=fill)
    draft.replace(pad, "{s}[:, 0]", s=static)
    return draft.fix(
        "say how many rows there are", Safety.SUGGEST, f"{function.view.text(op.base)} must have one dimension"
    )


def a_size(function: Function, node: ast.expr) -> bool:
    """Whether an expression can be a number of rows: none that is negative, or on the device."""
    value = function.constant(node)
    if value is not None:
        return isinstance(value, int) and value > 0
    return isinstance(node, (ast.Name, ast.Attribute)) and not function.fact(node).is_tensor


def counted_beforehand(site: Site, function: Function, mask: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """How many elements of a mask are true, where that is known from how it was made, and of what that is known.

    A mask of zeros that is set at the indices of a `topk`: k. A `one_hot`: one for each label.
    """
    made = function.op(function.value(mask))
    if made is not None and made.name == "one_hot":
        return made.base, made.base
    if made is None or made.name not in ("zeros", "zeros_like", "new_zeros") or not isinstance(mask, ast.Name):
        return None
    defined = function.definition(mask)
    if defined is None or site.fact_of(mask).ndim not in (1, None):
        return None
    written = [n for n in function.reads(mask.id) if function.writes(n)]
    if len(written) != 1 or function.definition(written[0]) is not defined or function.loop(written[0]) is not None:
        return None
    index = set_at(function, written[0])
    chosen = part_of(function, index) if index is not None else None
    best = function.op(chosen[0]) if chosen is not None else None
    if index is None or chosen is None or best is None or best.name != "topk" or chosen[1] not in (1, "indices"):
        return None
    size = best.argument(0, "k")
    return (size, index) if size is not None and a_size(function, size) else None


def set_at(function: Function, name: ast.Name) -> ast.expr | None:
    """The index i of `m[i] = True` and `m.scatter_(0, i, True)`."""
    parent = function.parent(name)
    outer = function.parent(parent) if parent is not None else None
    if isinstance(parent, ast.Subscript) and isinstance(outer, ast.Assign) and true(outer.value):
        return parent.slice
    op = function.op(outer)
    if op is None or op.name != "scatter_" or len(op.args) != 3:
        return None
    return op.args[1] if function.constant(op.args[0]) in (0, -1) and true(op.args[2]) else None


def true(node: ast.expr) -> bool:
    """Whether this is True or 1, written out."""
    return isinstance(node, ast.Constant) and node.value in (True, 1)


def known_number(site: Site, function: Function, call: ast.Call, op: Op, tupled: bool) -> Fix | None:
    """`nonzero` of a mask of which it is known how many elements are true."""
    found = counted_beforehand(site, function, op.base)
    if found is None or op.args or op.keywords.keys() - {"as_tuple"}:
        return None
    size, known = found
    row = positions(function, call, tupled) if tupled else None
    draft = function.draft()
    number = draft.part("{n}.numel()", n=size) if size is known else draft.node(size)
    static = draft.part("torch.nonzero_static({m}, size={k})", m=op.base, k=number)
    if tupled:
        draft.replace(row or call, "{s}[:, 0]" if row is not None else "{s}.unbind(1)", s=static)
    else:
        draft.replace(call, "{s}", s=static)
    return draft.fix("say how many there are", Safety.SUGGEST, said_of(function, size, known))


def selected(site: Site, function: Function) -> Fix | None:
    """`x[mask]` with a mask of which it is known how many elements are true."""
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.slice, ast.Name):
        return None
    found = counted_beforehand(site, function, taken.slice)
    if found is None or found[0] is found[1]:
        return None
    draft = function.draft()
    draft.replace(taken.slice, "torch.nonzero_static({m}, size={k})[:, 0]", m=taken.slice, k=found[0])
    return draft.fix("say how many rows it keeps", Safety.SUGGEST, said_of(function, *found))


def said_of(function: Function, size: ast.expr, known: ast.expr) -> str:
    """What must hold for the number of true elements to be the one that is named."""
    if size is known:
        return "every label must be a class: where one is not, a row is missing and holds -1"
    return DISTINCT.format(function.view.text(known))
