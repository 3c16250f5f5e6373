"""Which names of a function may share memory: `flat = mask.view(-1)` with `mask`, as slices do, loops over it, lists of it.

What a function that is not torch's gives back may, too. What is computed anew does not: sums, comparisons, and what positions
or a mask select.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from syncscope.codemod.calls import INERT
from syncscope.codemod.function import Function
from syncscope.model.fact import Value
from syncscope.project.syntax import each_of, walk

VIEWS = frozenset(
    """Buffer H Parameter T Tensor adjoint alias align_as align_tensors align_to alpha_dropout as_strided as_subclass
    as_tensor asarray atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_tensors broadcast_to byte cartesian_prod
    cdouble cfloat chalf chunk coalesce complex conj conj_physical contiguous cpu cuda data detach diagonal double
    dropout dropout1d dropout2d dropout3d dsplit einsum expand expand_as feature_alpha_dropout feature_dropout flatten
    float from_dlpack from_numpy half hsplit imag indices int long mH mT meshgrid moveaxis movedim narrow numpy permute
    pin_memory positive ravel real refine_names rename requires_grad_ reshape reshape_as resolve_conj resolve_neg
    rrelu select short split split_with_sizes squeeze swapaxes swapdims t tensor_split to to_dense transpose type
    type_as unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze values view view_as
    view_as_complex view_as_real vsplit""".split()
)
"""Functions and methods of torch, and attributes of a tensor, that may give what shares memory with it."""

OF_SEVERAL = frozenset("align_tensors broadcast_tensors cartesian_prod einsum meshgrid".split())
"""Functions of torch whose result may share memory with any of what they are given, not only with the first."""

REDUCE = frozenset("mean norm prod std sum var".split())
"""Methods that compute anew, whatever has them: tensors, numpy's arrays, data frames."""

LAID_OUT = frozenset("flatten permute ravel reshape squeeze swapaxes transpose unsqueeze".split())
"""Methods, of numpy's arrays too, that are given numbers only, and give nothing of them."""

DESCRIBE = frozenset("device dtype grad_fn is_cuda is_leaf layout names ndim requires_grad shape".split())
"""Attributes of a tensor that are none."""

CARRY = (ast.Starred, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)


def sharing(function: Function, name: str, surely: bool = False) -> set[str]:
    """The names whose values may share memory with this one's, itself among them, wherever they are bound in the function.

    `surely`: but not by functions of others, which may give back what they are given.
    """
    pairs = function.once(f"sharing {surely}", function.scope, lambda: _pairs(function, surely))
    found, todo = {name}, [name]
    while todo:
        new = pairs.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def _pairs(function: Function, surely: bool) -> dict[str, set[str]]:
    """Each name that is bound to what may share another's memory, and that one, both ways."""
    found: dict[str, set[str]] = {}
    for target, value in _bindings(function):
        if surely and any(isinstance(n, ast.Call) and function.op(n) is None for n in walk(value)):
            continue
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
    if function.fact(node).kind is Value.SCALAR:
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
        name = dotted.rpartition(".")[2]
        given = given if name in OF_SEVERAL else given[:1]
    elif dotted in INERT or (dotted is None and isinstance(call.func, ast.Attribute) and call.func.attr in REDUCE):
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
