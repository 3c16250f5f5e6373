"""Reductions over what a mask selects, in fixed shapes, and one index instead of many masks."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules._lengths import length, number_of_elements
from syncscope.rules._proofs import elementwise, is_mask, same_rank, same_shape

if TYPE_CHECKING:
    from syncscope.rules._draft import Part

LAST_BITS = "the sum may differ in its last bits, and overflows in half precision where the whole tensor's would"
EMPTY = "an empty selection gives {0} and no error, and one of {0} only shares its gradient with what is left out"
FINITE = "what is left out must be finite or its gradient is NaN"
TEMPLATES = {  # (reduction, dtypes): code, what changes; nothing changes where that is empty
    ("sum", (Dtype.BOOL, Dtype.INT)): ("torch.where({m}, {x}, 0).sum()", ""),
    ("sum", (Dtype.FLOAT, Dtype.UNKNOWN)): ("torch.where({m}, {x}, 0).sum()", LAST_BITS),
    ("mean", (Dtype.FLOAT, Dtype.UNKNOWN)): ("torch.where({m}, {x}, 0.0).sum() / {m}.sum()", LAST_BITS),
    ("max", (Dtype.FLOAT,)): ('{x}.masked_fill(~{m}, float("-inf")).max()', EMPTY.format("-inf")),
    ("amax", (Dtype.FLOAT,)): ('{x}.masked_fill(~{m}, float("-inf")).amax()', EMPTY.format("-inf")),
    ("min", (Dtype.FLOAT,)): ('{x}.masked_fill(~{m}, float("inf")).min()', EMPTY.format("inf")),
    ("amin", (Dtype.FLOAT,)): ('{x}.masked_fill(~{m}, float("inf")).amin()', EMPTY.format("inf")),
    ("count_nonzero", (Dtype.BOOL,)): ("({x} & {m}).count_nonzero()", ""),
    ("any", (Dtype.BOOL,)): ("({x} & {m}).any()", ""),
    ("all", (Dtype.BOOL,)): ("({x} | ~{m}).all()", ""),
}
EXACT = (
    ast.Compare, ast.Subscript, ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.BitAnd, ast.BitOr, ast.BitXor, ast.Invert,
    ast.USub, ast.cmpop, ast.expr_context,
)  # fmt: skip  # what raises nothing, whatever the values are


def supposed(site: Site, function: Function) -> Fix | None:
    """As `reduced`, where the mask may have fewer dimensions than what it selects from: then rows are kept, not elements."""
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.ctx, ast.Load):
        return None
    if same_rank(site, function, taken.slice, taken.value):
        return None
    if site.fact_of(taken.slice).ndim is not None:  # mostly one, of rows
        return None
    found = reduced(site, function, taken.value, taken.slice, fits=True)
    if found is None:
        return None
    x, m = function.view.text(taken.value), function.view.text(taken.slice)
    return replace(found, safety=Safety.SUGGEST, changes=f"{x} must have the shape of {m}; {found.changes}")


def reduced(site: Site, function: Function, base: ast.expr, mask: ast.expr, fits: bool = False) -> Fix | None:
    """A reduction of what a mask selects, `base[mask].sum()`, as a reduction over all of base. The site is the selection."""
    taken = site.node
    if not isinstance(taken, ast.expr) or not is_mask(site.fact_of(mask)):
        return None
    inner = whole(site, function, taken, mask)
    if inner is taken and not fits and not same_rank(site, function, mask, base):
        return None
    used, definition = function.carried(inner)
    named = used
    if definition is not None:
        used = whole(site, function, named, mask, named)
    outer = function.parent(used)
    call = function.parent(outer) if isinstance(outer, ast.Attribute) else outer
    op = function.op(call)
    if op is None or op.base is not used or op.args or op.keywords:
        return counted(function, taken, mask)
    dtype = site.fact_of(used).dtype
    found = next((value for (name, dtypes), value in TEMPLATES.items() if name == op.name and dtype in dtypes), None)
    if found is None or not isinstance(call, ast.expr) or not function.pure(mask) or not function.pure(base):
        return counted(function, taken, mask)
    if op.name == "mean" and inner is taken and (guard := guarded(function, call, taken, mask)) is not None:
        return zero_if_empty(function, guard, base, mask)
    template, changes = found
    draft = function.draft()
    bases: dict[ast.expr, Part] = {
        n: n.value for n in ast.walk(inner) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)
    }
    if definition is not None:
        draft.remove(definition)
    dense: Part = base if inner is taken else draft.swapped(inner, bases)
    if used is not named:
        more: dict[ast.expr, Part] = {
            n: n.value for n in ast.walk(used) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)
        }
        dense = draft.swapped(used, {named: dense, **more})
    draft.replace(call, template, m=mask, x=dense)
    selected = [b for b in bases.values() if isinstance(b, ast.expr)] if inner is not taken else [base]
    proved = all(same_shape(function, mask, b) for b in selected)
    statement = function.statement(call)
    calm = definition is None or (statement is not None and function.quiet(definition, statement))
    if (
        not changes
        and proved
        and calm
        and used is named
        and all(isinstance(n, EXACT) for n in ast.walk(inner) if inner is not taken)
    ):
        return draft.fix("reduce all, with the mask inside", Safety.SAFE)
    changes = changes or "a mask that does not fit, or a division by zero that is left out, is reported in other words"
    if (inner is not taken or used is not named) and dtype in (Dtype.FLOAT, Dtype.UNKNOWN):
        changes = f"{changes}; {FINITE}"
    if not fits and not all(same_rank(site, function, mask, b) for b in selected):
        changes = f"{changes}; all must have the mask's shape"
    return draft.fix("reduce all, with what is left out neutral", Safety.UNSAFE, changes)


def whole(site: Site, function: Function, taken: ast.expr, mask: ast.expr, stands: ast.expr | None = None) -> ast.expr:
    """The largest expression around a selection that is made element by element of selections by the same mask."""
    at = taken
    while True:
        outer = function.parent(at)
        if isinstance(outer, ast.Attribute):
            outer = function.parent(outer)
        if not isinstance(outer, ast.expr) or not elementwise(site, function, outer, mask, stands, stands is not None):
            return at
        at = outer


def counted(function: Function, taken: ast.expr, mask: ast.expr) -> Fix | None:
    """`len(x[m])` is the number of true elements of m."""
    used, definition = function.carried(taken)
    count = length(function, used) or number_of_elements(function, used)
    if count is None:
        return None
    draft = function.draft()
    if definition is not None:
        draft.remove(definition)
    draft.replace(count, "{m}.sum()", m=mask)
    return draft.fix(
        "count the mask",
        Safety.UNSAFE,
        "the count is a 0-d tensor that stays on the device, no Python int: what needs an int will read it",
    )


def guarded(function: Function, mean: ast.expr, taken: ast.expr, mask: ast.expr) -> ast.IfExp | None:
    """The `... if there is any else 0` around a mean."""
    outer = function.parent(mean)
    if not isinstance(outer, ast.IfExp) or outer.body is not mean or not nothing(function, outer.orelse):
        return None
    test = outer.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
        if function.constant(test.comparators[0]) != 0:
            return None
        test = test.left
    asked = function.op(test)
    if asked is not None and asked.name in ("any", "sum", "count_nonzero") and function.same(asked.base, mask):
        return outer
    if asked is not None and asked.name in ("numel", "nelement") and function.same(asked.base, taken):
        return outer
    if isinstance(test, ast.Call) and function.dotted(test.func) == "len" and function.same(test.args[0], taken):
        return outer
    return None


def nothing(function: Function, node: ast.expr) -> bool:
    """Whether a value is zero: written out, a tensor of it, or `x.sum() * 0`, which is zero if x is finite."""
    if function.constant(node) is not None:
        return function.constant(node) == 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        one, other = function.constant(node.left), function.constant(node.right)
        sides = (node.right if one == 0 else node.left if other == 0 else None,)
        return any(side is not None and function.fact(side).ndim == 0 for side in sides)
    op = function.op(node)
    if op is None:
        return False
    if op.name == "tensor":
        return function.constant(op.base) == 0
    shape = op.args[0] if op.name == "new_zeros" and op.args else op.base if op.name == "zeros" else None
    return isinstance(shape, ast.Tuple) and not shape.elts


def zero_if_empty(function: Function, guard: ast.IfExp, base: ast.expr, mask: ast.expr) -> Fix | None:
    """`x[m].mean() if m.any() else 0` without asking."""
    draft = function.draft()
    draft.replace(guard, "torch.where({m}, {x}, 0.0).sum() / {m}.sum().clamp(min=1)", m=mask, x=base)
    return draft.fix(
        "sum all, and divide by the count or one",
        Safety.UNSAFE,
        f"{LAST_BITS}; where nothing is selected it is a zero tensor, no Python number",
    )


def indexed_once(site: Site, function: Function, better: frozenset[int]) -> Fix | None:
    """One `nonzero` instead of one wait for each use of the same mask. `better`: ids of nodes that have another fix."""
    mask = site.node.slice if isinstance(site.node, ast.Subscript) else None
    if not isinstance(mask, ast.Name) or (definition := function.definition(mask)) is None:
        return None
    uses = [
        s.node
        for s in function.sites
        if s.op in ("mask_read", "mask_write")
        and isinstance(s.node, ast.Subscript)
        and id(s.node) not in better
        and function.same(s.node.slice, mask)
        and is_mask(s.fact_of(s.node.slice))
        and function.definition(s.node.slice) is definition
    ]
    if len(uses) < 2 or site.node not in uses:
        return None
    first = function.statement(uses[0])
    block = function.block(definition)
    while first is not None and first not in block:
        first = next((n for n in function.around(first) if isinstance(n, ast.stmt)), None)
    if first is None or function.disturbed(mask.id, definition, uses[-1]):
        return None
    fact = site.fact_of(mask)
    if fact.ndim == 0:
        return None
    fresh = isinstance(definition.value, (ast.Compare, ast.BinOp, ast.UnaryOp))  # shares its memory with nothing
    fits = fresh and all(same_shape(function, use.slice, use.value) for use in uses)
    draft = function.draft()
    index = function.fresh(f"{mask.id}_index")
    draft.insert_before(first, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    title = f"look for the true elements of {mask.id} once, not {len(uses)} times"
    if fits and fact.ndim is not None:
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, "a mask whose shape does not fit is not always reported")
