"""Reductions over what a mask selects, in fixed shapes, and one index instead of many masks."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules._proofs import is_mask, same_rank, same_shape
from syncscope.rules.nonzero import length, number_of_elements

LAST_BITS = "the sum may differ in its last bits, and overflows in half precision where the whole tensor's would"
EMPTY = "an empty selection gives {} and no error"
TEMPLATES = {  # reduction: (for which dtypes, code, what changes)
    "sum": ((Dtype.FLOAT, Dtype.INT, Dtype.UNKNOWN), "torch.where({m}, {x}, 0).sum()", LAST_BITS),
    "mean": ((Dtype.FLOAT, Dtype.UNKNOWN), "torch.where({m}, {x}, 0.0).sum() / {m}.sum()", LAST_BITS),
    "max": ((Dtype.FLOAT,), '{x}.masked_fill(~{m}, float("-inf")).max()', EMPTY.format("-inf")),
    "amax": ((Dtype.FLOAT,), '{x}.masked_fill(~{m}, float("-inf")).amax()', EMPTY.format("-inf")),
    "min": ((Dtype.FLOAT,), '{x}.masked_fill(~{m}, float("inf")).min()', EMPTY.format("inf")),
    "amin": ((Dtype.FLOAT,), '{x}.masked_fill(~{m}, float("inf")).amin()', EMPTY.format("inf")),
    "any": ((Dtype.BOOL,), "({x} & {m}).any()", ""),
    "all": ((Dtype.BOOL,), "({x} | ~{m}).all()", ""),
}


def reduced(site: Site, function: Function, base: ast.expr, mask: ast.expr) -> Fix | None:
    """A reduction of what a mask selects, `base[mask].sum()`, as a reduction over all of base. The site is the selection."""
    taken = site.node
    if not isinstance(taken, ast.expr) or not is_mask(site.fact_of(mask)) or not same_rank(site, function, mask, base):
        return None
    outer = function.parent(taken)
    call = function.parent(outer) if isinstance(outer, ast.Attribute) else outer
    op = function.op(call)
    if op is None or op.base is not taken or op.args or op.keywords or op.name not in TEMPLATES:
        return counted(function, taken, mask)
    assert isinstance(call, ast.expr)
    dtypes, template, changes = TEMPLATES[op.name]
    if site.fact_of(base).dtype not in dtypes or not function.pure(mask) or not function.pure(base):
        return None
    if op.name == "mean" and (guard := guarded(function, call, taken, mask)) is not None:
        return zero_if_empty(function, guard, base, mask)
    draft = function.draft()
    draft.replace(call, template, m=mask, x=base)
    if not changes and same_shape(function, mask, base):
        return draft.fix("reduce all, with the mask inside", Safety.SAFE)
    changes = changes or "a mask that does not fit is reported in other words"
    return draft.fix("reduce all, with what is left out neutral", Safety.UNSAFE, changes)


def counted(function: Function, taken: ast.expr, mask: ast.expr) -> Fix | None:
    """`len(x[m])` is the number of true elements of m."""
    count = length(function, taken) or number_of_elements(function, taken)
    if count is None:
        return None
    draft = function.draft()
    draft.replace(count, "{m}.sum()", m=mask)
    return draft.fix(
        "count the mask",
        Safety.UNSAFE,
        "the count is a 0-d tensor that stays on the device, no Python int: what needs an int will read it",
    )


def guarded(function: Function, mean: ast.expr, taken: ast.expr, mask: ast.expr) -> ast.IfExp | None:
    """The `... if there is any else 0` around a mean."""
    outer = function.parent(mean)
    if not isinstance(outer, ast.IfExp) or outer.body is not mean or function.constant(outer.orelse) != 0:
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
    fits = all(same_shape(function, use.slice, use.value) for use in uses)
    draft = function.draft()
    index = function.fresh(f"{mask.id}_index")
    draft.insert_before(first, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    title = f"look for the true elements of {mask.id} once, not {len(uses)} times"
    if fits and fact.ndim is not None:
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, "a mask whose shape does not fit is not always reported")
