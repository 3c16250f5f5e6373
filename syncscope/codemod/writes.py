"""What may change between two places of a function: names bound again, tensors written, also through what shares their memory.

What others were handed, or was kept in an object, may be written by any code that is not seen here, see `exposed`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from syncscope.codemod.calls import HOLD, INERT, WRITE, computes, foreign, in_place
from syncscope.codemod.enclosure import LOOPS, SCOPES
from syncscope.codemod.function import Function
from syncscope.codemod.sharing import CARRY, DESCRIBE, VIEWS, roots, selects, sharing
from syncscope.model.fact import Value
from syncscope.project.syntax import walk

MUTATE = frozenset("append clear extend insert pop popitem remove reverse setdefault sort update".split())
"""Methods of Python's own containers that change them."""


HAND_OUT = frozenset(
    """__array__ __dlpack__ data_ptr register_hook register_post_accumulate_grad_hook storage to_dlpack typed_storage
    untyped_storage""".split()
)
"""Methods of a tensor that hand out its memory, or have it written later."""


def disturbed(function: Function, name: str, start: ast.AST, end: ast.AST, within: bool = False) -> bool:
    """Whether what a name holds may be rebound or written between two nodes, in the order of the text, or `within` the first.

    Seen as writes: bindings, index assignment, augmented assignment, methods whose name ends in `_`, `out=`, and being
    handed to a function that is not torch's; of all names that may share its memory, and wherever nested functions stand.
    """
    between = _between(function, start, end, within)
    return any(
        (function.file.span(use).start in between or _nested(function, use)) and writes(function, use, other == name)
        for other in sharing(function, name)
        for use in function.names(other)
    )


def written_in(function: Function, statement: ast.stmt, exprs: Iterable[ast.AST]) -> bool:
    """Whether a statement itself writes what these expressions are made of: before it they may be something else.

    What its last call does, `info.update({"loss": loss.item()})`, comes after all that it is given is read.
    """
    span, last = function.file.span(statement), getattr(statement, "value", None)
    until = last if isinstance(last, ast.Call) else None
    names = {n.id for expr in exprs for n in walk(expr) if isinstance(n, ast.Name)}
    uses = (
        (use, name == other) for name in names for other in sharing(function, name) for use in function.names(other)
    )
    here = ((u, own) for u, own in uses if span.start <= function.file.span(u).start < span.end)
    return any(writes(function, u, own, until) for u, own in here)


def exposed(function: Function, name: str, start: ast.AST, end: ast.AST) -> bool:
    """Whether code that is not seen may write what a name holds between two nodes: others got hold of it before, and run."""
    between = _between(function, start, end, within=True)
    lent = any(
        function.file.span(use).start < between.start
        and writes(function, use, binding=False)
        and not _only_written(function, use)
        for other in sharing(function, name)
        for use in function.reads(other)
    )
    run = function.every(ast.Call, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)
    return lent and any(function.file.span(n).start in between and _runs_others(function, n) for n in run)


def _only_written(function: Function, use: ast.Name) -> bool:
    """Whether a name is given to what writes it and keeps nothing: `np.random.shuffle(rows)`."""
    call = function.parent(use)
    return isinstance(call, ast.Call) and use in call.args and function.dotted(call.func) in WRITE


def lent_before(function: Function, expr: ast.AST, start: ast.AST, end: ast.AST) -> bool:
    """Whether code that is not seen runs between two nodes and may write this: what others gave, or an object holds.

    A parameter of a network is read before `optimizer.step()` and after, without having been handed to it here.
    """
    between = _between(function, start, end, within=False)
    run = function.every(ast.Call, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)
    others = any(function.file.span(n).start in between and _runs_others(function, n) for n in run)
    return others and any(_given(function, n) for n in walk(expr) if isinstance(n, (ast.Name, ast.Attribute)))


def _given(function: Function, node: ast.expr, depth: int = 3) -> bool:
    """Whether what this is was not made here: an attribute, an argument, or a part of one."""
    if isinstance(node, ast.Attribute):
        return node.attr not in DESCRIBE and not isinstance(function.parent(node), ast.Call)
    made = function.reaching_definition(node)
    if made is None:
        return True
    held = made.value
    while isinstance(held, (ast.Subscript, ast.Call, ast.Attribute)):
        if isinstance(held, ast.Call) and not (isinstance(held.func, ast.Attribute) and held.func.attr in VIEWS):
            return function.dotted(held.func) == "next"
        held = held.func.value if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else held
        if isinstance(held, ast.Attribute):
            return True
        held = held.value if isinstance(held, ast.Subscript) else held
    return isinstance(held, ast.Name) and bool(depth) and _given(function, held, depth - 1)


def overwritten(function: Function, tensor: ast.expr, read: ast.AST, loop: ast.AST) -> bool:
    """Whether what is read in a pass of a loop is surely written in place later, before another value takes its name."""
    span, after = function.file.span(_located(loop)), function.file.span(_located(read)).end
    for use in (n for n in walk(tensor) if isinstance(n, ast.Name)):
        made = function.reaching_definition(use)
        fresh = made is not None and loop in function.around(made)
        region = range(after if fresh else span.start, span.end)
        here = (n for n in function.names(use.id) if function.file.span(n).start in region)
        if any(_writes_in_place(function, n) for n in here):
            return True
    return False


def written_after(function: Function, tensor: ast.expr, statement: ast.stmt) -> bool:
    """Whether a name's tensor is written in place further down: an operator that kept it for its gradient fails then."""
    end = function.file.span(statement).end
    return isinstance(tensor, ast.Name) and any(
        function.file.span(use).start >= end and _writes_in_place(function, use)
        for name in sharing(function, tensor.id)
        for use in function.names(name)
    )


def seen_otherwise(function: Function, tensor: ast.expr, statement: ast.stmt) -> bool:
    """Whether what a statement writes in place is read by another name afterwards, or by none here: by who gave the tensor."""
    if not isinstance(tensor, ast.Name):
        return False
    loop = function.loop(statement)
    start = function.file.span(_located(loop) if loop is not None else statement)
    after = {
        name: [
            n
            for n in function.reads(name)
            if _follows(function, n, start.start if loop is not None else start.end, statement)
        ]
        for name in sharing(function, tensor.id, surely=True)
    }
    return not after.pop(tensor.id) or any(after.values())


def _follows(function: Function, use: ast.Name, start: int, statement: ast.stmt) -> bool:
    return function.file.span(use).start >= start and function.statement(use) is not statement


def _writes_in_place(function: Function, use: ast.Name) -> bool:
    parent = function.parent(use)
    call = function.parent(parent) if parent is not None else None
    match parent:
        case ast.Attribute(attr=attr) if isinstance(call, ast.Call) and call.func is parent:
            return attr.endswith("_") and not attr.endswith("__")
        case ast.AugAssign(target=target):
            return target is use
        case ast.Subscript(value=value, ctx=ctx):
            return value is use and not isinstance(ctx, ast.Load)
        case ast.keyword(arg="out"):
            return True
        case ast.Call(func=func) if func is not use:
            dotted = function.dotted(func) or ""
            return dotted.startswith("torch.") and (dotted.endswith("_") or not computes(dotted))
    return False


def _between(function: Function, start: ast.AST, end: ast.AST, within: bool) -> range:
    """The offsets between two nodes; what stands later in a loop that begins after the first comes round again."""
    span, last = function.file.span(_located(start)), function.file.span(_located(end)).start
    begun = {*function.around(start)}
    for loop in function.around(end):
        if isinstance(loop, LOOPS) and loop not in begun:
            last = max(last, function.file.span(loop).end)
    return range(span.start if within else span.end, last)


def _runs_others(function: Function, node: ast.AST) -> bool:
    """Whether code that is not seen runs here: any but torch's own, and Python's."""
    if not isinstance(node, ast.Call):
        return True
    dotted = function.dotted(node.func)
    if dotted is not None:
        return not (computes(dotted) or dotted in INERT or dotted in HOLD)
    if not isinstance(node.func, ast.Attribute):
        return True
    if node.func.attr == "backward":  # hooks
        return True
    fact = function.fact(node.func.value)
    return not (fact.is_tensor or (fact.kind is Value.SEQUENCE and node.func.attr in ("append", "insert")))


def changed(function: Function, start: ast.AST, end: ast.AST, *exprs: ast.AST) -> bool:
    """Whether anything that these expressions are made of may change between two nodes, see `disturbed`."""
    names = {n.id for expr in exprs for n in walk(expr) if isinstance(n, ast.Name)}
    return any(disturbed(function, name, start, end) for name in names)


def quiet(function: Function, start: ast.stmt, end: ast.stmt) -> bool:
    """Whether nothing between two statements of a block can write anything: only names get values."""
    block = function.block(start)
    if end not in block:
        return False
    between = block[block.index(start) + 1 : block.index(end)]
    return all(
        isinstance(s, ast.Assign) and function.pure(s.value) and all(isinstance(t, ast.Name) for t in s.targets)
        for s in between
    )


def sole_use(function: Function, expr: ast.expr) -> tuple[ast.expr, ast.Assign | None]:
    """Where a value is used: the expression itself, or the only use of the name it is assigned to, and that assignment.

    Only where what the value is computed from stays as it is until then, and the assignment can be taken out.
    """
    uses, assign = named_uses(function, expr)
    return (uses[0], assign) if len(uses) == 1 else (expr, None)


def named_uses(function: Function, expr: ast.expr) -> tuple[list[ast.expr], ast.Assign | None]:
    """Where a value is used: the expression itself, or all uses of the name it is assigned to, and that assignment, on the
    terms of `sole_use`.
    """
    assign = function.parent(expr)
    if not isinstance(assign, ast.Assign) or assign.value is not expr or len(assign.targets) != 1:
        return [expr], None
    reads = function.seen_by(assign)
    if not reads or isinstance(function.scope, ast.Module):
        return [expr], None
    if not function.pure(expr) or not function.alone(assign) or changed(function, assign, reads[-1], expr):
        return [expr], None
    return [*reads], assign


def writes(function: Function, use: ast.Name, binding: bool, until: ast.Call | None = None) -> bool:
    """Whether this use of a name may write what it holds, or bind it where `binding` counts too; `until` this call runs."""
    if not isinstance(use.ctx, ast.Load):
        return binding or isinstance(function.parent(use), ast.AugAssign)
    node: ast.expr = use
    while True:  # outwards, as long as what is around may share the memory
        parent = function.parent(node)
        if until is not None and until in (parent, _call_around(function, parent)):
            return False
        if parent is None:
            return False
        if isinstance(parent, ast.Call) and parent.func is node:  # a method that has a name, `add = total.add_`
            return not binding or node is not use
        found = _through(function, use, node, parent)
        if isinstance(found, bool):
            return found
        node = found


def _call_around(function: Function, parent: ast.AST | None) -> ast.AST | None:
    """The call that an argument is given to by name, or whose method an attribute is."""
    outer = function.parent(parent) if isinstance(parent, (ast.keyword, ast.Attribute)) else None
    return outer if isinstance(parent, ast.keyword) or isinstance(outer, ast.Call) else None


def _through(function: Function, use: ast.Name, node: ast.expr, parent: ast.AST) -> ast.expr | bool:
    """What is made of a node that may share its memory; True where that is written, False where nobody can any more."""
    match parent:
        case ast.Attribute():
            return _of_attribute(function, parent)
        case ast.Subscript(value=value, ctx=ctx) if value is node:
            return True if not isinstance(ctx, ast.Load) else False if selects(function, parent) else parent
        case ast.keyword(arg=arg):
            call = function.parent(parent)
            return True if arg == "out" or not isinstance(call, ast.Call) else _given_to(function, use, call)
        case ast.Call():
            return _given_to(function, use, parent)
        case ast.Assign(targets=targets):  # a name is followed by `sharing`
            return any(_keeps(function, t) for t in targets) or _in_class(function, parent)
        case ast.Yield() | ast.YieldFrom() | ast.arguments():  # or the default of a function
            return True
        case ast.Return() | ast.Lambda():  # of a function in this one
            return _nested(function, use)
        case ast.IfExp(test=test) if test is node:
            return False
    return parent if isinstance(parent, CARRY) else False


def _of_attribute(function: Function, parent: ast.Attribute) -> ast.expr | bool:
    """What an attribute of a tensor gives, or the method that it is, as `_through` says it."""
    attr, call = parent.attr, function.parent(parent)
    if not isinstance(parent.ctx, ast.Load) or attr == "data":
        return True
    if not isinstance(call, ast.Call) or call.func is not parent:
        return False if attr in DESCRIBE else parent
    if (attr.endswith("_") and not attr.endswith("__")) or attr in MUTATE or attr in HAND_OUT:
        return True
    return call if attr in VIEWS else False


def _given_to(function: Function, use: ast.Name, call: ast.Call) -> ast.expr | bool:
    """What a call makes of what it is given, as `_through` says it."""
    if foreign(function, call) or in_place(function, call):
        return True
    return call if roots(function, call) & {use.id} else False


def _keeps(function: Function, target: ast.expr) -> bool:
    """Whether what is assigned there can be written later, unseen: an attribute, or a place in what is no tensor."""
    match target:
        case ast.Attribute():
            return True
        case ast.Subscript(value=held):
            return not function.fact(held).is_tensor
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(_keeps(function, e) for e in elts)
    return False


def _in_class(function: Function, statement: ast.stmt) -> bool:
    """Whether a name belongs to a class that the function makes."""
    outer = next((n for n in function.around(statement) if isinstance(n, (*SCOPES, ast.ClassDef))), None)
    return isinstance(outer, ast.ClassDef)


def _nested(function: Function, use: ast.Name) -> bool:
    """Whether a use stands in a function in this one, which may run at any time."""
    return any(isinstance(n, SCOPES) and n is not function.scope for n in function.around(use))


def _located(node: ast.AST) -> ast.expr | ast.stmt:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node


def bound_between(function: Function, name: str, first: ast.stmt, use: ast.expr) -> bool:
    """Whether a name is given a value after a statement begins and before a use of it: what it means there is not there yet."""
    begin, end = function.file.span(first).start, function.file.span(use).start
    return any(begin <= function.file.span(bind).start < end for bind in function.binds(name))
