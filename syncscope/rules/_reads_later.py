"""Reads in a loop: once after it, or only on the passes that use them."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules._reads import tensor_read

PLAIN_SPEC = re.compile(r"|[ +<>^]?\d*(\.\d+[efg])")  # of a number; an int takes these too
LOGGING = {
    "print",
    "log",
    "info",
    "debug",
    "write",
    "add_scalar",
    "log_metric",
    "log_metrics",
    "set_postfix",
    "set_description",
    "set_description_str",
    "set_postfix_str",
    "add_scalars",
}


def accumulated(site: Site, function: Function) -> Fix | None:
    """`total += loss.item()` in a loop: the total stays on the device until the loop is over."""
    tensor, add, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    factor: ast.expr | None = None
    if isinstance(add, ast.BinOp) and isinstance(add.op, ast.Mult):
        factor = add.right if add.left is site.node else add.left
        add = function.parent(add)
    if (
        tensor is None
        or loop is None
        or not isinstance(add, ast.AugAssign)
        or not isinstance(add.op, ast.Add)
        or not isinstance(add.target, ast.Name)
        or (factor is not None and (function.fact(factor).is_tensor or not function.pure(factor)))
    ):
        return None
    total = add.target.id
    starts = [function.constant(value) for value in starting(function, total)]
    others = [n for n in function.binds(total) if n is not add.target]
    if len(starts) != len(others) or not starts or None in starts or function.shared(total):
        return None
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == total and isinstance(n.ctx, ast.Load)]
    if any(not guarded(function, n, loop) for n in inside):
        return None
    dtype = site.fact.dtype
    whole = dtype is Dtype.INT and all(isinstance(s, int) for s in starts) and factor is None
    if whole and isinstance(site.node, ast.Call) and function.dotted(site.node.func) == "float":
        return None
    if dtype is Dtype.BOOL or (dtype is not Dtype.FLOAT and not whole and any(isinstance(s, int) for s in starts)):
        return None
    number = "int" if whole else "float"
    draft = function.draft()
    wide = ".detach().long()" if whole else ".detach().double()"
    more = " * {factor}" if factor is not None else ""
    draft.replace(add, f"{total} = {total} + {{t}}{wide}{more}", t=tensor, factor=factor or "1")
    for name in inside:
        draft.replace(name, f"{number}({total})")
    draft.insert_after(loop, f"{total} = {number}({total})")
    return draft.fix(
        "add up on the device, read once after the loop",
        Safety.UNSAFE,
        f"{total} is a tensor inside the loop, in float64, which MPS has not; it holds one number a pass, as before",
    )


def assigned(function: Function, name: str) -> list[ast.Assign]:
    """The assignments to a name, alone or in a chain `a = b = 0.0`."""
    parents = (function.parent(n) for n in function.binds(name))
    return [p for p in parents if isinstance(p, ast.Assign)]


def starting(function: Function, name: str) -> list[ast.expr]:
    """The values that a name is given, alone, in a chain, or beside others: `a, b = 0.0, 0`."""
    found = [s.value for s in assigned(function, name)]
    for bound in function.binds(name):
        side = function.parent(bound)
        assign = function.parent(side) if isinstance(side, ast.Tuple) else None
        values = assign.value if isinstance(assign, ast.Assign) else None
        if isinstance(side, ast.Tuple) and isinstance(values, ast.Tuple) and len(side.elts) == len(values.elts):
            found.append(values.elts[side.elts.index(bound)])
    return found


def guarded(function: Function, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a node runs on some passes of a loop only: under an `if` in it."""
    child = node
    for n in function.around(node):
        if n is loop:
            return False
        if isinstance(n, ast.If) and (child in n.body or child in n.orelse):
            return True
        child = n
    return False


def only_where_logged(site: Site, function: Function) -> Fix | None:
    """`value = loss.item()` that is used under one `if` only is read there."""
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, block = statement.targets[0], function.block(statement)
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    bound = [t.id for t in targets if isinstance(t, ast.Name)]
    reads = [n for name in bound for n in function.reads(name)]
    if len(bound) != len(targets) or not reads or any(len(function.binds(n)) != 1 or function.shared(n) for n in bound):
        return None
    later = block[block.index(statement) + 1 :]
    place = next((s for s in later if any(n in reads for n in ast.walk(s))), None)
    if not isinstance(place, ast.If) or isinstance(function.scope, ast.Module):
        return None
    body = {id(n) for s in place.body for n in ast.walk(s)}
    names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    if (
        any(id(n) not in body for n in reads)
        or not function.pure(statement.value)
        or any(function.disturbed(n, statement, place.body[0]) for n in names)
        or any(function.fact(n).is_tensor for n in ast.walk(place.test) if isinstance(n, ast.expr))
    ):
        return None
    if not function.alone(statement) or not function.alone(place.body[0]):
        return None
    draft = function.draft()
    draft.remove(statement)
    draft.insert_before(place.body[0], f"{', '.join(bound)} = {{value}}", value=statement.value)
    title = f"read {' and '.join(bound)} only where used"
    if function.quiet(statement, place) and function.pure(place.test) and never_raises(statement.value, function):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(
        title, Safety.UNSAFE, "it is read later: what stands between must not write what it is computed from"
    )


def never_raises(value: ast.expr, function: Function) -> bool:
    """Whether a read or a text surely works, so that nobody misses its error where it is not made."""
    tensor = tensor_read(value, function)
    if tensor is not None:
        return isinstance(tensor, ast.Name) and function.fact(tensor).ndim == 0
    if not isinstance(value, ast.JoinedStr):
        return False
    for part in value.values:
        if isinstance(part, ast.FormattedValue):
            spec = part.format_spec
            literal = (
                spec.values[0].value
                if isinstance(spec, ast.JoinedStr) and isinstance(spec.values[0], ast.Constant)
                else ""
            )
            fact = function.fact(part.value)
            read = tensor_read(part.value, function)
            if read is not None:
                fact = function.fact(read)
            number = (fact.is_tensor and fact.ndim == 0 and fact.dtype is Dtype.FLOAT) or fact.kind is Value.SCALAR
            if not isinstance(read or part.value, ast.Name) or not number or not PLAIN_SPEC.fullmatch(str(literal)):
                return False
    return True


def collected(site: Site, function: Function) -> Fix | None:
    """`history.append(loss.item())` in a loop: tensors are collected, and read together after it."""
    tensor, call, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    if (
        tensor is None
        or loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "append"
        or not isinstance(call.func.value, ast.Name)
        or site.fact.ndim != 0
        or site.fact.dtype not in (Dtype.FLOAT, Dtype.INT)
    ):
        return None
    name = call.func.value.id
    made = [s for s in assigned(function, name) if isinstance(s.value, ast.List) and not s.value.elts]
    block = function.block(loop)
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    if len(function.binds(name)) != 1 or len(made) != 1 or made[0] not in block or inside != [call.func.value]:
        return None
    between = [n for n in function.reads(name) if n.lineno < loop.lineno]
    if between or block.index(made[0]) > block.index(loop):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=tensor) if isinstance(site.node, ast.expr) else None
    draft.insert_after(loop, f"{name} = torch.stack({name}).tolist() if {name} else []")
    return draft.fix(
        "collect on the device, read all after the loop",
        Safety.UNSAFE,
        f"{name} holds tensors inside the loop; they must all have one dtype and live on one device",
    )


def logged_rarely(site: Site, function: Function) -> Fix | None:
    """`print(i, loss.item())` on every pass of `for i, x in enumerate(loader)`: on some passes only."""
    statement = function.statement(site.node)
    loop = function.loop(statement) if statement is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(loop, ast.For):
        return None
    word = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if word not in LOGGING or statement is None or not function.alone(statement) or guarded(function, statement, loop):
        return None
    step = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    draft = function.draft()
    if function.dotted(loop.iter.func) == "enumerate" if isinstance(loop.iter, ast.Call) else False:
        if not isinstance(step, ast.Name):
            return None
        count = step.id
    else:
        count = function.fresh("step")
        draft.replace(loop.target, f"{count}, {{each}}", each=loop.target)
        draft.replace(loop.iter, "enumerate({all})", all=loop.iter)
    indent = function.indent(statement)
    deeper = indent + ("\t" if "\t" in indent else "    ")
    draft.replace(statement, f"if {count} % 50 == 0:\n{deeper}{{call}}", call=draft.indented(call, deeper))
    return draft.fix("write it down every 50 passes", Safety.SUGGEST, "it is written down on some passes only")


def metered(site: Site, function: Function) -> Fix | None:
    """`meter.update(loss.item(), n)`: the meter adds up on the device."""
    tensor, call = tensor_read(site.node, function), function.parent(site.node)
    if (
        tensor is None
        or function.loop(site.node) is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "update"
        or site.node not in call.args
        or not isinstance(site.node, ast.expr)
    ):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=tensor)
    return draft.fix(
        "give the meter the tensor",
        Safety.SUGGEST,
        "the meter's sums are tensors, in the tensor's own dtype, and are read where it is written down",
    )
