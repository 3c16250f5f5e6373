"""Indices and masks that may live on the host while what they select lives on the device: Python's brackets take both, and
`where`, `masked_fill`, `scatter_` and `index_fill_` only those of their own device.
"""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.proofs import one_device
from syncscope.codemod.whereabouts import made_on_host
from syncscope.model.fact import Device, Site, Value
from syncscope.project.syntax import each_of
from syncscope.tensors.facts import Tag

SHAPED = set("long int bool flatten view reshape squeeze unsqueeze detach contiguous expand t".split())


def may_be_of_host(function: Function, part: ast.expr) -> bool:
    """Whether a part of an index is made on the host on one of the paths that lead here."""
    fact = function.fact(part)
    return fact.is_tensor and fact.ref is Tag.PERHAPS_OF_HOST and fact.ndim != 0


def selected_from_host(site: Site, function: Function) -> ast.expr | None:
    """The index or mask of a site that is made on the host, at least on one path, where nothing says that the rest is."""
    base = site.node.value if isinstance(site.node, ast.Subscript) else None
    for part in selecting(site):
        fact = function.fact(part)
        if fact.ndim == 0 or fact.kind is Value.SCALAR or fact.device is Device.DEVICE:
            continue
        if base is not None and one_device(function, (part, base)):
            continue
        if may_be_of_host(function, part) or made_on_host(function, part):
            return part
    return None


def handed_over(site: Site, function: Function) -> ast.expr | None:
    """The index or mask of a site that this function was given, and nothing says where it lives."""
    base = site.node.value if isinstance(site.node, ast.Subscript) else None
    for part in selecting(site):
        if function.fact(part).device is Device.DEVICE or (base is not None and one_device(function, (part, base))):
            continue
        if is_given(function, part):
            return part
    return None


def selecting(site: Site) -> list[ast.expr]:
    """What selects at a site: the tensors of an index, or what positions are looked for in."""
    if isinstance(site.node, ast.Subscript):
        parts = each_of(site.node.slice)
        return [p for p in parts if not isinstance(p, (ast.Slice, ast.Constant)) and site.fact_of(p).is_tensor]
    return [site.operand] if site.operand is not None else []


def is_given(function: Function, part: ast.expr) -> bool:
    """Whether an index is a parameter, or what an object or a dict holds, in another shape at most."""
    match function.value(part):
        case ast.Name(id=name) as use:
            return name in function.parameters and function.untouched(use)
        case ast.Attribute(value=ast.Name()):
            return True
        case ast.Subscript(slice=ast.Constant(value=str())):
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=word)) if word in SHAPED:
            return is_given(function, inner)
    return False
