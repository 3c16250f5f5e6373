"""Where a mask is true, as numbers: the spellings of it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import TorchCall
from syncscope.codemod.pattern import around
from syncscope.codemod.proofs import is_mask
from syncscope.model.fact import Site
from syncscope.model.ops import Op

OF_TUPLE = "{it}[0]"
OF_TENSOR = (
    "{it}[:, 0]", "{it}.squeeze()", "{it}.squeeze(1)", "{it}.squeeze(-1)", "{it}.squeeze(dim=1)", "{it}.squeeze(dim=-1)",
    "{it}.flatten()", "{it}.view(-1)", "{it}.reshape(-1)",
)  # fmt: skip


class Lookup(NamedTuple):
    """A `nonzero`, `argwhere` or `where(m)`, which looks for the true elements of its operand."""

    call: ast.Call
    op: TorchCall
    tupled: bool  # the result is a tuple of index tensors, one for each dimension


def lookup(site: Site, function: Function) -> Lookup | None:
    """What is looked for at a site; None where that is only guessed: no ground to change code on."""
    op = function.op(site.node)
    if site.confidence < 2 or op is None or not isinstance(site.node, ast.Call):
        return None
    return Lookup(site.node, op, site.op is Op.WHERE or is_true(op.keywords.get("as_tuple")))


def is_true(flag: ast.expr | None) -> bool:
    """Whether a flag is given, and True."""
    return isinstance(flag, ast.Constant) and flag.value is True


def positions(function: Function, call: ast.Call, tupled: bool) -> ast.expr | None:
    """The expression around a `nonzero` that is one row of positions."""
    found = around(function, call, *((OF_TUPLE,) if tupled else OF_TENSOR))
    return found.node if found is not None and is_read(found.node) else None


def is_read(node: ast.expr) -> bool:
    """Whether an expression is no target of an assignment."""
    return isinstance(getattr(node, "ctx", None), ast.Load | None)


class Rows(NamedTuple):
    """A name for the positions at which a mask is true."""

    name: str
    mask: ast.expr
    call: ast.Call  # the `nonzero`
    statement: ast.Assign
    tupled: bool  # one index for each dimension, in a tuple, not one row of positions


def rows_of(function: Function, use: ast.expr) -> Rows | None:
    """What a name stands for in `rows = nonzero(m).squeeze(1)`, `rows = where(m)[0]` or `rows = nonzero(m, as_tuple=True)`."""
    statement = function.reaching_definition(use)
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
        tupled = op.name == "where" or is_true(flag)
        whole = tupled and call is value
        if not (whole or positions(function, call, tupled) is value) or not truths(function, op.base):
            return None
        return Rows(use.id, op.base, call, statement, whole)
    return None


def truths(function: Function, node: ast.expr) -> bool:
    """Whether the operand of a `nonzero` is surely of bools: it is known, or made of comparisons."""
    if is_mask(function.fact(node)):
        return True
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return truths(function, left) and truths(function, right)
        case ast.Compare(ops=[_]):
            return True
    return False


def part_of(function: Function, node: ast.expr) -> tuple[ast.Call, int | str] | None:
    """The call of whose result this is a part, and which: `t.topk(k).indices`, `t.topk(k)[1]`, or `i` of `_, i = t.topk(k)`."""
    match function.value(node):
        case ast.Attribute(value=whole, attr=field) if isinstance(call := function.value(whole), ast.Call):
            return call, field
        case ast.Subscript(value=whole, slice=index) if isinstance(call := function.value(whole), ast.Call):
            at = function.constant(index)
            return (call, at) if isinstance(at, int) else None
        case ast.Name(id=name) if len(bound := function.binds(name)) == 1 and not function.shared(name):
            names = function.parent(bound[0])
            match names, function.parent(names) if names is not None else None:
                case ast.Tuple(elts=elts), ast.Assign(targets=[targets], value=ast.Call() as call) if targets is names:
                    return call, elts.index(bound[0])
    return None
