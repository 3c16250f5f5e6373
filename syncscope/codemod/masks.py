"""Masks of selections: where in an index they stand, what binds their names, before which statement one index serves all."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Sequence

from syncscope.codemod.enclosure import CONDITIONAL
from syncscope.codemod.function import Function
from syncscope.codemod.proofs import may_be_mask
from syncscope.model.fact import Site, Value
from syncscope.model.ops import Op
from syncscope.project.syntax import each_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
INDEX = re.compile(r"(?:^|_)(?:index|indexes|indices?|inds?|idxs?)$")
SURE = 3  # the confidence of what torch itself gives
SET_ON_TENSORS = ("data", "grad", "requires_grad")
REPEATED = (ast.For, ast.AsyncFor, ast.With)  # what runs their bodies, most often


def mask_of(site: Site) -> ast.expr | None:
    """The mask of a selection, alone or beside slices: `x[mask]`, `x[:, mask]`."""
    if not isinstance(site.node, ast.Subscript):
        return None
    parts = each_of(site.node.slice)
    others = [part for part in parts if part is not site.operand]
    calm = all(isinstance(part, (ast.Slice, ast.Constant)) for part in others)
    return site.operand if len(others) < len(parts) and calm else None


def masking(use: ast.Subscript, mask: ast.expr, function: Function) -> ast.expr:
    """The mask in an index; the whole index, where only `:` comes after it: `x[mask, :]` is `x[mask]`, of any mask."""
    first, *rest = each_of(use.slice)
    if function.same(first, mask) and all(map(is_all, rest)):
        return use.slice
    return next(part for part in each_of(use.slice) if function.same(part, mask))


def is_all(part: ast.expr) -> bool:
    """Whether a part of an index takes everything: `:`."""
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def bound_once(function: Function, use: ast.expr) -> ast.Assign | ast.AnnAssign | None:
    """The one statement that binds a name, beside others or with its type: `mask, rest = f(x)`, `mask: Tensor = x > 0`."""
    if not isinstance(use, ast.Name) or use.id in function.parameters or function.captured(use.id):
        return None
    bound = function.binds(use.id)
    statement = function.statement(bound[0]) if len(bound) == 1 else None
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return None
    given = any(bound[0] is part for part in ast.walk(statement.value))
    before = (statement.end_lineno or 0) < use.lineno
    return statement if before and not given and function.block(statement) else None


def bound_by(function: Function, use: ast.expr) -> list[ast.stmt] | None:
    """The block through which a name keeps what it holds, where no assignment gave it: the body of a function or of a `for`."""
    if not isinstance(use, ast.Name) or function.captured(use.id):
        return None
    if isinstance(function.scope, FUNCTIONS) and not function.binds(use.id) and function.untouched(use):
        return function.scope.body
    bound = function.binds(use.id)
    loop = function.loop(use)
    while loop is not None and len(bound) == 1:
        if isinstance(loop, ast.For) and bound[0] in ast.walk(loop.target):
            return loop.body
        loop = function.loop(loop)
    return None


def index_of(function: Function, name: str) -> str:
    """A new name for the index that is made of a list: `rows_index`, and of what is called so already `idx_tensor`."""
    return function.fresh(f"{name}_tensor" if INDEX.search(name) else f"{name.rstrip('_')}_index")


def positions_of(function: Function, name: str) -> str:
    """A new name for the positions where a mask is true: `keep_index`, and of what is called so already `keep_positions`."""
    stem, _, last = name.rpartition("_")
    called = last if INDEX.search(last) else ""
    return function.fresh(f"{stem}_positions".lstrip("_") if called else f"{name.rstrip('_')}_index")


def is_container(function: Function, node: ast.expr) -> bool:
    """Whether a function treats this as an object of a class that takes masks, and need not take positions for them: it sets
    attributes on it that tensors have not, or enters one, `with graph.node():`.
    """
    if not isinstance(node, ast.Name) or function.fact(node).confidence >= SURE:
        return False
    for use in function.names(node.id):
        above = function.parent(use)
        if isinstance(above, ast.Attribute) and above.value is use:
            if isinstance(above.ctx, ast.Store) and above.attr not in SET_ON_TENSORS:
                return True
            around = itertools.islice(function.around(above), 2)  # the call, and what enters it
            if any(isinstance(each, ast.withitem) for each in around):
                return True
    return False


def holds(call: ast.AST, mask: ast.Name) -> bool:
    """Whether a call is given the mask itself."""
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    return any(isinstance(each, ast.Name) and each.id == mask.id for each in given)


def before_all(function: Function, home: list[ast.stmt], uses: Sequence[ast.expr]) -> ast.stmt | None:
    """The statement before which an index serves all uses, and after which one surely comes: nothing is looked for in vain."""
    for n in function.around(uses[0]):
        if isinstance(n, ast.stmt):
            break
        if isinstance(n, CONDITIONAL):
            return None
    statement = function.statement(uses[0])
    while statement is not None:
        block, parent = function.block(statement), function.parent(statement)
        if isinstance(statement, ast.If) and function.is_elif(statement):
            return None
        serves = all(any(n in block for n in function.around(use)) for use in uses)
        if serves and (block is home or not isinstance(parent, REPEATED)):
            return statement
        if not isinstance(parent, REPEATED) or statement not in parent.body:
            return None
        statement = parent
    return None


def selections(
    function: Function, mask: ast.Name, bound: ast.stmt | list[ast.stmt], but: Collection[int]
) -> list[ast.Subscript]:
    """What a mask selects as it is `bound`, by a statement or through a block, `but` for some nodes by their ids."""

    def binds(use: ast.expr) -> bool:
        definition = function.reaching_definition(use) or bound_once(function, use)
        return definition is bound or (definition is None and bound_by(function, use) is bound)

    return [
        s.node
        for s in function.sites
        if s.op in (Op.MASK_READ, Op.MASK_WRITE)
        and isinstance(s.node, ast.Subscript)
        and id(s.node) not in but
        and s.fact_of(s.node.value).kind is not Value.OTHER  # boxes of a class that takes masks, perhaps, and no tuples
        and not is_container(function, s.node.value)
        and (other := mask_of(s)) is not None
        and function.same(other, mask)
        and may_be_mask(s.fact_of(other))
        and binds(other)
    ]
