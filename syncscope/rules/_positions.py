"""Where a mask is true, as numbers: the spellings of it, and how many there can be where that is known."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function, Op
from syncscope.rules._proofs import is_mask

FLAT = {"view", "reshape"}
COMPLETED = "there are always that many rows: those that are missing hold -1, which as an index is the last row"
DISTINCT = "{0} must name different elements: where it names one twice, a row is missing and holds -1"


def positions(function: Function, call: ast.Call, tupled: bool) -> ast.expr | None:
    """The expression around a `nonzero` that is one row of positions: `[0]` of a tuple, else `.squeeze(1)`, `[:, 0]`, ..."""
    parent = function.parent(call)
    if isinstance(parent, ast.Subscript) and parent.value is call and isinstance(parent.ctx, ast.Load):
        index = parent.slice
        if tupled:
            return parent if function.constant(index) == 0 else None
        column = isinstance(index, ast.Tuple) and len(index.elts) == 2 and everything(index.elts[0])
        return parent if column and isinstance(index, ast.Tuple) and function.constant(index.elts[1]) == 0 else None
    outer = function.parent(parent) if isinstance(parent, ast.Attribute) else None
    op = function.op(outer)
    if tupled or op is None or op.base is not call or not isinstance(outer, ast.expr):
        return None
    dim = op.argument(0, "dim")
    if op.name == "squeeze":
        return outer if dim is None or function.constant(dim) in (1, -1) else None
    if op.name in FLAT:
        return outer if len(op.args) == 1 and function.constant(op.args[0]) == -1 else None
    return outer if op.name == "flatten" and not op.args and not op.keywords else None


class Rows(NamedTuple):
    """A name for the positions at which a mask is true."""

    name: str
    mask: ast.expr
    call: ast.Call  # the `nonzero`
    statement: ast.Assign
    tupled: bool  # one index for each dimension, in a tuple, not one row of positions


def rows_of(function: Function, use: ast.expr) -> Rows | None:
    """What a name stands for in `rows = nonzero(m).squeeze(1)`, `rows = where(m)[0]` or `rows = nonzero(m, as_tuple=True)`."""
    statement = function.definition(use)
    if statement is None or not isinstance(use, ast.Name):
        return None
    value = statement.value
    inside = [value, getattr(value, "value", None), getattr(getattr(value, "func", None), "value", None)]
    for call in inside:
        op = function.op(call)
        if op is None or op.name not in ("nonzero", "argwhere", "where") or op.args or not isinstance(call, ast.Call):
            continue
        flag = op.keywords.get("as_tuple")
        if op.keywords.keys() - {"as_tuple"} or not (flag is None or isinstance(flag, ast.Constant)):
            return None
        tupled = op.name == "where" or (isinstance(flag, ast.Constant) and flag.value is True)
        whole = tupled and call is value
        if not (whole or positions(function, call, tupled) is value) or not truths(function, op.base):
            return None
        return Rows(use.id, op.base, call, statement, whole)
    return None


def truths(function: Function, node: ast.expr) -> bool:
    """Whether the operand of a `nonzero` is surely of bools: it is known, or made of comparisons."""
    if is_mask(function.fact(node)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return truths(function, node.left) and truths(function, node.right)
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def everything(index: ast.expr) -> bool:
    """Whether an index is a bare `:`."""
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None


def part_of(function: Function, node: ast.expr) -> tuple[ast.Call, int | str] | None:
    """The call of whose result this is a part, and which: `t.topk(k).indices`, `t.topk(k)[1]`, or `i` of `_, i = t.topk(k)`."""
    node = function.value(node)
    if isinstance(node, ast.Attribute) and isinstance(call := function.value(node.value), ast.Call):
        return call, node.attr
    if isinstance(node, ast.Subscript) and isinstance(call := function.value(node.value), ast.Call):
        at = function.constant(node.slice)
        return (call, at) if isinstance(at, int) else None
    if not isinstance(node, ast.Name) or function.shared(node.id):
        return None
    bound = function.binds(node.id)
    names = function.parent(bound[0]) if len(bound) == 1 else None
    assign = function.parent(names) if isinstance(names, ast.Tuple) else None
    if not isinstance(names, ast.Tuple) or not isinstance(assign, ast.Assign) or assign.targets != [names]:
        return None
    return (assign.value, names.elts.index(bound[0])) if isinstance(assign.value, ast.Call) else None


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
