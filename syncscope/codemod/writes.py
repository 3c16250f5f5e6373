"""What may change between two places of a function: names bound again, tensors written, also through views of them.

`flat = mask.view(-1)` shares memory with `mask`, as slices, loops over it and lists that hold it do, and what a function
that is not torch's gives back may. What is computed anew does not: sums, comparisons, and what positions or a mask select.
What others were handed, or was kept in an object, may be written by any code that is not seen here, see `exposed`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from syncscope.codemod.enclosure import LOOPS, SCOPES
from syncscope.codemod.function import Function
from syncscope.model.fact import Fact, Value
from syncscope.tensors.syntax import each_of, walk

VIEWS = frozenset(
    """H Parameter T adjoint as_strided as_tensor asarray atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_tensors
    broadcast_to byte chunk coalesce complex conj contiguous cpu cuda data detach diagonal double dropout dsplit
    expand expand_as flatten float from_numpy half hsplit imag indices int long mH mT moveaxis movedim narrow
    numpy permute pin_memory positive ravel real requires_grad_ reshape reshape_as resolve_conj resolve_neg
    select short split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose type type_as
    unbind unflatten unfold unsafe_chunk unsafe_split unsqueeze values view view_as view_as_complex view_as_real
    vsplit""".split()
)
"""Functions and methods of torch, and attributes of a tensor, that may give what shares memory with it."""

LAID_OUT = frozenset("flatten permute ravel reshape squeeze swapaxes transpose unsqueeze".split())
"""Methods, of numpy's arrays too, that are given numbers only, and give nothing of them."""

DESCRIBE = frozenset("device dtype grad_fn is_cuda is_leaf layout names ndim requires_grad shape".split())
"""Attributes of a tensor that are none."""

MUTATE = frozenset("append clear extend insert pop popitem remove reverse setdefault sort update".split())
"""Methods of Python's own containers that change them."""

HOLD = frozenset("list tuple dict set zip enumerate reversed iter next min max sorted".split())
"""Functions of Python that give what they are given, and do not change it."""

INERT = frozenset(
    """len print float int bool str abs round isinstance range type id hasattr repr sum any all format time.time
    time.perf_counter numpy.arange numpy.empty numpy.eye numpy.full numpy.ones numpy.zeros numpy.random.permutation
    numpy.random.rand numpy.random.randint numpy.random.randn numpy.random.uniform""".split()
)
"""Functions that give nothing of what they are given, and change nothing."""

PURE = tuple(
    f"torch.{name}"
    for name in """nn.functional. nn.utils.rnn. nn.Parameter linalg. fft. special. sparse. nested. Tensor. distributions.
    autograd. cuda. amp. random.""".split()
)
"""What of torch only computes, as its own functions do: unlike torch.distributed, torch.optim, torch.nn.init."""

INPLACE_AT = (
    dict.fromkeys("relu relu6 selu silu mish hardsigmoid hardswish".split(), 1)
    | dict.fromkeys("elu celu leaky_relu".split(), 2)
    | dict.fromkeys("threshold hardtanh dropout alpha_dropout feature_alpha_dropout".split(), 3)
    | {"dropout1d": 3, "dropout2d": 3, "dropout3d": 3, "rrelu": 4}
)
"""The place of `inplace` among the arguments of torch.nn.functional."""

CARRY = (ast.Starred, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)


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
    """Whether a statement itself writes what these expressions are made of: before it they may be something else."""
    span = function.file.span(statement)
    names = {n.id for expr in exprs for n in walk(expr) if isinstance(n, ast.Name)}
    uses = (
        (use, name == other) for name in names for other in sharing(function, name) for use in function.names(other)
    )
    return any(span.start <= function.file.span(u).start < span.end and writes(function, u, own) for u, own in uses)


def exposed(function: Function, name: str, start: ast.AST, end: ast.AST) -> bool:
    """Whether code that is not seen may write what a name holds between two nodes: others got hold of it before, and run."""
    between = _between(function, start, end, within=True)
    lent = any(
        function.file.span(use).start < between.start and writes(function, use, binding=False)
        for other in sharing(function, name)
        for use in function.reads(other)
    )
    run = function.every(ast.Call, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)
    return lent and any(function.file.span(n).start in between and _runs_others(function, n) for n in run)


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
            return dotted.startswith("torch.") and (dotted.endswith("_") or not _computes(dotted))
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
        return not (_computes(dotted) or dotted in INERT or dotted in HOLD)
    return not (isinstance(node.func, ast.Attribute) and function.fact(node.func.value).is_tensor)


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


def sharing(function: Function, name: str) -> set[str]:
    """The names whose values may share memory with this one's, itself among them, wherever they are bound in the function."""
    pairs = function.once("sharing", function.scope, lambda: _pairs(function))
    found, todo = {name}, [name]
    while todo:
        new = pairs.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _pairs(function: Function) -> dict[str, set[str]]:
    """Each name that is bound to what may share another's memory, and that one, both ways."""
    found: dict[str, set[str]] = {}
    for target, value in _bindings(function):
        for one in (n.id for n in walk(target) if isinstance(n, ast.Name)):
            for other in roots(function, value) - {one}:
                found.setdefault(one, set()).add(other)
                found.setdefault(other, set()).add(one)
    return found


def _bindings(function: Function) -> Iterable[tuple[ast.expr, ast.expr]]:
    for node in function.every(
        ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem
    ):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairwise(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.AsyncFor(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                yield target, value


def _pairwise(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    match target, value:
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            yield from zip(names, values, strict=True)
        case ((ast.Attribute() | ast.Subscript()), _):  # what is kept there is seen as written, see `writes`
            return
        case _:
            yield target, value


def roots(function: Function, node: ast.expr) -> set[str]:
    """The names whose memory a value may share."""
    if _is_number(function.fact(node)):
        return set()
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Attribute(value=inner, attr=attr):
            return set() if attr in DESCRIBE else roots(function, inner)
        case ast.Subscript(value=inner):
            return set() if selects(function, node) else roots(function, inner)
        case ast.Call():
            return _of_call(function, node)
        case ast.NamedExpr(value=inner) | ast.Starred(value=inner) | ast.Await(value=inner):
            return roots(function, inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return roots(function, inner)
        case ast.BinOp(left=left, right=right) if function.fact(node).kind is not Value.TENSOR:
            return roots(function, left) | roots(function, right)  # lists
    if isinstance(node, (*CARRY, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return {name for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr) for name in roots(function, n)}
    return set()


def _of_call(function: Function, call: ast.Call) -> set[str]:
    given = [*call.args, *(k.value for k in call.keywords)]
    dotted = function.dotted(call.func)
    if dotted is None and isinstance(call.func, ast.Attribute) and function.fact(call.func.value).is_tensor:
        name, given = call.func.attr, [call.func.value]
    elif dotted is not None and dotted.startswith("torch."):
        name, given = dotted.rpartition(".")[2], given[:1] if "broadcast" not in dotted else given
    elif dotted in INERT:
        return set()
    else:  # whatever is given may come back
        if isinstance(call.func, ast.Attribute) and dotted is None:
            given = [call.func.value, *(given if call.func.attr not in LAID_OUT else ())]
        return {name for each in given for name in roots(function, each)}
    if name not in VIEWS and not name.endswith("_"):
        return set()
    return {name for each in given for name in roots(function, each)}


def selects(function: Function, node: ast.Subscript) -> bool:
    """Whether a subscript gives new memory: positions or a mask select, where a slice or a number is a view."""
    parts = each_of(node.slice)
    return any(isinstance(p, ast.List) or ((f := function.fact(p)).is_tensor and f.ndim != 0) for p in parts)


def writes(function: Function, use: ast.Name, binding: bool = True) -> bool:
    """Whether this use of a name may write what it holds, or bind it where `binding` counts too."""
    if not isinstance(use.ctx, ast.Load):
        return binding or isinstance(function.parent(use), ast.AugAssign)
    node: ast.expr = use
    while True:  # outwards, as long as what is around may share the memory
        parent = function.parent(node)
        match parent:
            case ast.Attribute(attr=attr, ctx=ctx):
                call = function.parent(parent)
                if not isinstance(ctx, ast.Load) or attr == "data":
                    return True
                if isinstance(call, ast.Call) and call.func is parent:
                    if (attr.endswith("_") and not attr.endswith("__")) or attr in MUTATE:
                        return True
                    if attr not in VIEWS:
                        return False
                    node = call
                elif attr in DESCRIBE:
                    return False
                else:
                    node = parent
            case ast.Subscript(value=value, ctx=ctx) if value is node:
                if not isinstance(ctx, ast.Load):
                    return True
                if selects(function, parent):
                    return False
                node = parent
            case ast.keyword(arg=arg):
                call = function.parent(parent)
                if arg == "out" or not isinstance(call, ast.Call):
                    return True
                if foreign(function, call) or _in_place(function, call):
                    return True
                node = call
                if not roots(function, call) & {use.id}:
                    return False
            case ast.Call(func=func) if func is node:  # a method that has a name, `add = total.add_`
                return not binding or node is not use
            case ast.Call():
                if foreign(function, parent) or _in_place(function, parent):
                    return True
                if not roots(function, parent) & {use.id}:
                    return False
                node = parent
            case ast.Assign(targets=targets):  # a name is followed by `sharing`
                return any(_keeps(function, t) for t in targets)
            case ast.Yield() | ast.YieldFrom():
                return True
            case ast.IfExp(test=test) if test is node:
                return False
            case _ if isinstance(parent, CARRY):
                node = parent
            case _:
                return False


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


def foreign(function: Function, node: ast.AST | None) -> bool:
    """Whether a call runs code that may do anything to its arguments."""
    if not isinstance(node, ast.Call):
        return False
    dotted = function.dotted(node.func)
    if dotted is None:
        if isinstance(node.func, ast.Attribute) and function.fact(node.func.value).is_tensor:
            return node.func.attr.endswith("_")
        return not isinstance(node.func, ast.Attribute) or isinstance(node.func.value, ast.Name)
    return not (_computes(dotted) or dotted in INERT or dotted in HOLD) or dotted.endswith("_")


def _computes(dotted: str) -> bool:
    """Whether a function of torch only computes what it gives, and keeps no running statistics."""
    if dotted.endswith(("batch_norm", "instance_norm")):
        return False
    return dotted.startswith(PURE) or (dotted.startswith("torch.") and dotted.count(".") == 1)


def _in_place(function: Function, call: ast.Call) -> bool:
    """Whether a function may be asked to write where it reads: `F.relu(x, inplace=flag)`, `F.relu(x, True)`."""
    name = (function.dotted(call.func) or "").rpartition("torch.nn.functional.")[2]
    asked = [k.value for k in call.keywords if k.arg == "inplace"] + call.args[INPLACE_AT.get(name, len(call.args)) :]
    return any(not (isinstance(v, ast.Constant) and v.value is False) for v in asked)


def _is_number(fact: Fact) -> bool:
    return fact.kind is Value.SCALAR


def _nested(function: Function, use: ast.Name) -> bool:
    """Whether a use stands in a function in this one, which may run at any time."""
    return any(isinstance(n, SCOPES) and n is not function.scope for n in function.around(use))


def _located(node: ast.AST) -> ast.expr | ast.stmt:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node
