"""What the parts of an index are, as far as is known: single numbers, a mask, what the host holds, what was looked for."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.model.fact import Device, Dtype, Fact, Shape, Site, Value
from syncscope.model.ops import Op
from syncscope.project.syntax import each_of

LOOKUPS = (Op.NONZERO, Op.ARGWHERE, Op.WHERE)


def parts(target: ast.Subscript) -> list[ast.expr]:
    """The parts of an index that are not slices."""
    found = each_of(target.slice)
    return [part for part in found if not isinstance(part, ast.Slice)]


def one_element(target: ast.Subscript, site: Site) -> bool:
    """Whether each part of an index is one number."""
    facts = [site.fact_of(part) for part in parts(target)]
    return all(f.kind is Value.SCALAR or (f.is_tensor and f.ndim == 0) for f in facts)


def maybe_mask(target: ast.Subscript, site: Site) -> bool:
    """Whether a part of an index may be a mask: then the number does not wait, and a tensor in its place would.

    Not so where several tensors select: then no fill writes it, and it is copied in any case.
    """
    facts = [site.fact_of(part) for part in parts(target)]
    if len(facts) > 1 and len(facts) == len(each_of(target.slice)) and all(map(may_select, facts)):
        return False
    return any(f.kind is Value.UNKNOWN or (f.is_tensor and f.dtype in (Dtype.UNKNOWN, Dtype.BOOL)) for f in facts)


def may_select(fact: Fact) -> bool:
    """Whether a part of an index is a tensor with dimensions, for all that is known, and no mask."""
    return fact.kind is Value.UNKNOWN or (fact.is_tensor and fact.dtype is not Dtype.BOOL and fact.ndim != 0)


def of_host(function: Function, part: ast.expr) -> bool:
    """Whether a part of an index is copied to the device itself: a list, an array, a tensor of the host."""
    fact = function.fact(part)
    listed = fact.kind in (Value.ARRAY, Value.SEQUENCE) or isinstance(part, (ast.List, ast.ListComp))
    return listed or (fact.is_tensor and fact.ndim != 0 and fact.device in (Device.HOST, Device.DEFAULT))


def looked_for(function: Function, target: ast.Subscript, site: Site) -> bool:
    """Whether the positions are those of a mask: `masked_fill_` needs neither them nor the number's copy.

    Several that somebody else has looked for, and gave, are there anyhow.
    """
    if len(parts(target)) > 1 and not any(looked_for_here(function, part) for part in parts(target)):
        return False
    facts = [(part, site.fact_of(part)) for part in parts(target)]
    return any(
        fact.shape is Shape.DYNAMIC or (fact.kind is Value.SEQUENCE and not isinstance(part, ast.List))
        for part, fact in facts
    )


def looked_for_here(function: Function, part: ast.expr, depth: int = 4) -> bool:
    """Whether this function looks for what an index is made of."""
    names = [n for n in ast.walk(part) if isinstance(n, ast.Name)]
    if any(s.op in LOOKUPS and s.node in ast.walk(part) for s in function.sites):
        return True
    made = {id(s): s for n in names for bind in function.binds(n.id) if (s := function.statement(bind)) is not None}
    return depth > 0 and any(
        looked_for_here(function, s.value, depth - 1) for s in made.values() if isinstance(s, ast.Assign)
    )
