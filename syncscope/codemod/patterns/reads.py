"""Reads of numbers, `t.item()`, `float(t)`: what is read, and how several are read as one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.proofs import one_device, real
from syncscope.codemod.writes import changed
from syncscope.model.fact import Dtype, Fact, Site

STAYS = "it is a tensor that stays on the device, no Python number: what needs a number will read it"
STACK = "torch.stack"
KEEP_DTYPE = {"min", "max", "amin", "amax", "median"}
KEEP_COMPLEX = {"mean", "sum", "prod"}  # of complex numbers, too
MADE_REAL = {"std", "var", "norm"}
ONE_KIND = "all must be of one dtype and live on one device"
FLOATS = "what float() reads must be floating point"
TOGETHER = "there must be at least one, and all must have one dtype and no dimensions and live on one device"


def tensor_read(function: Function, node: ast.AST | None) -> ast.expr | None:
    """The tensor t of `t.item()` or `float(t)`, or `int(t)` where t holds integers."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=called, args=[tensor], keywords=[]):
            name = function.dotted(called)
            number = name == "float" or (name == "int" and function.fact(tensor).dtype is Dtype.INT)
            return tensor if number and not function.mixed(tensor) else None
    return None


def by_float(function: Function, read: ast.AST) -> bool:
    """Whether a number is read by `float(t)` and not known to be floating point: `tolist` may give it as an int."""
    tensor = tensor_read(function, read)
    called = isinstance(read, ast.Call) and function.dotted(read.func) == "float"
    return called and tensor is not None and function.fact(tensor).dtype is not Dtype.FLOAT


def of_one_kind(function: Function, reads: Iterable[ast.AST]) -> str:
    """What must hold of numbers that are read as one."""
    return f"{ONE_KIND}; {FLOATS}" if any(by_float(function, read) for read in reads) else ONE_KIND


def read_until_true(function: Function, node: ast.AST) -> bool:
    """Whether this is the read of `known = known or bool(flag)`: after the flag is set it is read no more."""
    kept = around(function, node, "{known} or {it}") if isinstance(node, ast.expr) else None
    statement = function.parent(kept.node) if kept is not None else None
    if kept is None or not isinstance(statement, ast.Assign) or statement.value is not kept.node:
        return False
    return ast.unparse(statement.targets[0]) == ast.unparse(kept.parts["known"])


def detached(function: Function, tensor: ast.expr) -> ast.expr:
    """The tensor without its own `.detach()` or `.data`, where the new code has one anyway."""
    found = seen(function, tensor, "{t}.data", "{t}.detach()")
    return detached(function, found["t"]) if found is not None else tensor


def known(site: Site, function: Function) -> bool:
    """Whether a read is known well enough to change code: surely, or because `.backward()` is called on what it is made of."""
    tensor = tensor_read(function, site.node)
    return site.confidence >= 2 or (tensor is not None and gone_back(function, tensor))


def gone_back(function: Function, tensor: ast.expr, depth: int = 2) -> bool:
    """Whether a value is made of a name on which `.backward()` is called, which only tensors have."""
    for name in (n for n in ast.walk(tensor) if isinstance(n, ast.Name)):
        around = (function.parent(use) for use in function.reads(name.id))
        if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in around):
            return True
        match function.reaching_definition(name):
            case ast.Assign(value=ast.BinOp() as made) if depth and gone_back(function, made, depth - 1):
                return True
    return False


def undone_between(function: Function, tensor: ast.expr, start: ast.stmt, end: ast.expr | ast.stmt) -> bool:
    """Whether a tensor may change after a statement, so that it cannot be read at a later one."""
    return not function.pure(tensor) or changed(function, start, end, tensor)


def alike(function: Function, reads: Sequence[ast.expr]) -> bool:
    """Whether reads surely give the same numbers when they are made as one: of one device, and of one kind of number."""
    tensors = [t for read in reads if (t := tensor_read(function, read)) is not None]
    facts = [function.fact(t) for t in tensors]
    if joined(facts) != STACK or any(by_float(function, read) for read in reads):
        return False
    floats = {f.dtype for f in facts} == {Dtype.FLOAT}
    if floats and one_device(function, tensors) and all(real(function, t) for t in tensors):
        return True  # what is narrower is widened, which changes no number
    return of_one_tensor(function, tensors, floats)


def of_one_tensor(function: Function, tensors: list[ast.expr], floats: bool) -> bool:
    """Whether all are reductions of one tensor that keep its dtype: then stacking them changes nothing."""
    ops = [function.op(t) for t in tensors]
    bases = {op.base.id for op in ops if op is not None and isinstance(op.base, ast.Name)}
    if len(bases) != 1 or any(op is None or not isinstance(op.base, ast.Name) or op.args or op.keywords for op in ops):
        return False
    names = {op.name for op in ops if op is not None}
    if not floats or names & KEEP_DTYPE:  # which complex numbers do not have: then what is floating is real
        return names <= (KEEP_DTYPE | KEEP_COMPLEX | MADE_REAL if floats else KEEP_DTYPE)
    return names <= KEEP_COMPLEX or names <= MADE_REAL


def joined(facts: Sequence[Fact]) -> str | None:
    """What joins such numbers: `torch.stack`, or `torch.hstack` where one may have a dimension; None where neither can."""
    if any(f.ndim not in (0, None) for f in facts) or not may_mix({f.dtype for f in facts}):
        return None
    return STACK if all(f.ndim == 0 for f in facts) else "torch.hstack"


def names_for(function: Function, tensors: Sequence[ast.expr]) -> list[str]:
    """New names for the numbers that tensors hold, after what the tensors are called or made by: `loss_value`, `mean_value`."""
    names: list[str] = []
    for tensor in tensors:
        op = function.op(tensor)
        word = tensor.id if isinstance(tensor, ast.Name) else op.name if op is not None else ""
        names.append(function.fresh(f"{word}_value" if word else "value", names))
    return names


def may_mix(dtypes: set[Dtype]) -> bool:
    """Whether numbers of these dtypes can go through one tensor: not bool, which would come back as 0 and 1."""
    return dtypes <= {Dtype.FLOAT, Dtype.UNKNOWN} or dtypes <= {Dtype.INT, Dtype.UNKNOWN}


def reads_of(function: Function, statement: ast.stmt) -> list[tuple[ast.Name, ast.expr]]:
    """Names and tensors of `a = t.item()` or `a, b = t.item(), u.item()`; empty for any other statement."""
    targets: Sequence[ast.expr]
    values: Sequence[ast.expr]
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if (
            len(targets) == len(values) > 1
        ):
            pass
        case ast.Assign(targets=[ast.Name() as target], value=value):
            targets, values = [target], [value]
        case _:
            return []
    found = []
    for name, one in zip(targets, values, strict=True):
        tensor = tensor_read(function, one)
        if not isinstance(name, ast.Name) or tensor is None or not function.pure(tensor):
            return []
        if function.fact(one).is_tensor or (by_float(function, one) and function.fact(tensor).dtype is Dtype.INT):
            return []
        found.append((name, tensor))
    return found
