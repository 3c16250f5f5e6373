"""What can be proved of tensors in the user's code: same shape, same rank, one value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import TorchCall
from syncscope.model.fact import Dtype, Fact, Site, Value
from syncscope.project.syntax import each_of
from syncscope.tensors.facts import Tag
from syncscope.tensors.torch.positions import mask_like
from syncscope.tensors.torch.signatures import LOSSES

ELEMENTWISE = {
    "isnan", "isinf", "isfinite", "isposinf", "isneginf", "logical_not", "abs", "bool", "float", "double", "half", "int",
    "long", "clone", "detach", "contiguous", "neg", "sign", "square", "exp", "sigmoid", "tanh", "relu", "round", "floor",
    "log", "log1p", "log2", "log10", "expm1", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "atan", "erf", "ceil",
    "trunc", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "pow",
    "clamp", "clamp_min", "clamp_max", "maximum", "minimum",
}  # fmt: skip
DTYPES = {
    "float", "float16", "float32", "float64", "double", "half", "bfloat16", "bool", "long", "int", "int32", "int64", "uint8",
}  # fmt: skip
LIKE = {"zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"}
REDUCING = {"sum", "any", "all", "mean", "max", "min", "amax", "amin", "norm", "count_nonzero", "argmax"}
FILLED = {"zeros_like", "ones_like"}
REAL = {"float", "double", "half", "abs", "norm", "relu", "amax", "amin", "floor", "ceil", "round", "trunc", "sign"}
NOT_ELEMENTWISE = (ast.In, ast.NotIn, ast.Is, ast.IsNot)
PAIRED = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy",
)
RESHAPING = {"resize_", "resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_", "set_", "data"}


def same_shape(function: Function, a: ast.expr, b: ast.expr) -> bool:
    """Whether two tensors surely have one shape, because both are computed element by element from the same one."""
    root = shape_of(function, a)
    return root is not None and root == shape_of(function, b)


def shape_of(function: Function, tensor: ast.expr, depth: int = 20) -> tuple[str, int] | None:
    """A name for the shape of a tensor: the variable, and the assignment of it, that it surely got its shape from.

    Writing into a tensor leaves its shape alone; a variable that is bound anew is another one.
    """
    if depth == 0:
        return None
    if isinstance(tensor, ast.Name):
        return _shape_of_name(function, tensor, depth)
    parts: list[ast.expr]
    if isinstance(tensor, ast.Compare):
        if len(tensor.ops) != 1 or isinstance(tensor.ops[0], NOT_ELEMENTWISE):
            return None
        parts = [tensor.left, *tensor.comparators]
    elif isinstance(tensor, ast.BinOp) and not isinstance(tensor.op, ast.MatMult):
        parts = [tensor.left, tensor.right]
    elif isinstance(tensor, ast.UnaryOp) and not isinstance(tensor.op, ast.Not):
        parts = [tensor.operand]
    elif (op := function.op(tensor)) is not None and op.name in ELEMENTWISE and not op.keywords:
        parts = [op.base, *op.args]
    elif op is not None and (op.name in LIKE or cast(function, op)):
        parts = [op.base]
    elif op is not None and (each := of_each_element(function, tensor, op)) is not None:
        parts = each
    else:
        return None
    roots = {shape_of(function, part, depth - 1) for part in parts if not is_number(function, part)}
    return roots.pop() if len(roots) == 1 else None


def unlike_ranks(function: Function, a: ast.expr, b: ast.expr) -> bool:
    """Whether two tensors surely differ in how many dimensions they have: they are known, or one gets some beside the other."""
    one, other = function.fact(a).ndim, function.fact(b).ndim
    if one is not None and other is not None:
        return one != other
    (root, more), (same, beside) = _dimensions_added(function, a), _dimensions_added(function, b)
    return root is not None and root == same and more != beside


def _dimensions_added(function: Function, tensor: ast.expr, depth: int = 20) -> tuple[tuple[str, int] | None, int]:
    """What a tensor got its shape from, and how many dimensions it has beside those: `x[None]` and `x.unsqueeze(0)` one."""
    if depth == 0:
        return None, 0
    inner, more, op = None, 0, function.op(tensor)
    match tensor:
        case ast.Name() if (defined := function.reaching_definition(tensor)) is not None:
            inner = defined.value
        case ast.Subscript(value=value, slice=index) if all(map(_only_adds, each_of(index))):
            inner, more = value, sum(isinstance(i, ast.Constant) and i.value is None for i in each_of(index))
        case ast.Call() if op is not None and op.name in ("unsqueeze", "one_hot"):
            inner, more = op.base, 1
        case ast.Call() if op is not None and op.name == "stack" and isinstance(op.base, (ast.List, ast.Tuple)):
            inner, more = next((each for each in op.base.elts if not isinstance(each, ast.Starred)), None), 1
        case ast.Call() if op is not None and ((op.name in ELEMENTWISE and not op.args) or cast(function, op)):
            inner = op.base
    root, beside = _dimensions_added(function, inner, depth - 1) if inner is not None else (None, 0)
    return (root, beside + more) if root is not None else (shape_of(function, tensor), 0)


def _only_adds(part: ast.expr) -> bool:
    """Whether a part of an index takes no dimension away: `None`, `:`, `...`."""
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...))


def of_each_element(function: Function, call: ast.expr, op: TorchCall) -> list[ast.expr] | None:
    """The tensors whose shape a loss has that is not reduced: `mse_loss(x, t, reduction="none")`; of classes the target."""
    how, name = op.keywords.get("reduction"), function.dotted(call.func) if isinstance(call, ast.Call) else None
    if not isinstance(how, ast.Constant) or how.value != "none" or not (name or "").startswith("torch.nn.functional."):
        return None
    target = op.argument(0, "target")
    if target is None or op.name not in (*PAIRED, "cross_entropy", "nll_loss"):
        return None
    return [op.base, target] if op.name in PAIRED else [target]


def _shape_of_name(function: Function, use: ast.Name, depth: int) -> tuple[str, int] | None:
    if function.once(f"reshaped {use.id}", function.scope, lambda: _is_reshaped(function, use.id)):
        return None
    defined = function.reaching_definition(use)
    if defined is not None:
        return shape_of(function, defined.value, depth - 1) or (use.id, id(defined))
    if function.untouched(use):
        return (use.id, 0)
    if use.id in function.parameters or function.captured(use.id):
        return None
    last = _bound_beside(function, use)
    return (use.id, id(last)) if last is not None else None


def _is_reshaped(function: Function, name: str) -> bool:
    around = map(function.parent, function.reads(name))
    return any(isinstance(each, ast.Attribute) and each.attr in RESHAPING for each in around)


def _bound_beside(function: Function, use: ast.Name) -> ast.Name | None:
    """Where a name surely got its value beside others before a use: `x, target = batch`, `for x, target in loader`."""
    before = [n for n in function.binds(use.id) if (n.lineno, n.col_offset) < (use.lineno, use.col_offset)]
    statement = function.statement(before[-1]) if before else None
    around = [use, *function.around(use)]
    if statement is None or isinstance(statement, ast.AugAssign):
        return None
    if statement in around:
        return (
            before[-1]
            if isinstance(statement, ast.For) and not any(n is use for n in ast.walk(statement.iter))
            else None
        )
    if function.beside(statement, use) is None:
        return None
    inner = (n for n in around if isinstance(n, (ast.For, ast.While)) and n not in function.around(statement))
    again = any(loop in function.around(n) for loop in inner for n in function.binds(use.id))
    return None if again else before[-1]


def elementwise(
    site: Site, function: Function, value: ast.expr, mask: ast.expr, stands: ast.expr | None, fits: bool
) -> bool:
    """Whether a value is made element by element of selections by this mask and of numbers.

    One of the tensors that are selected from must surely have as many dimensions as the mask, unless `fits` says that what the
    value meets has; then, in code that runs, all have. `stands`: the use of a name that stands for such a selection.
    """
    bases: list[ast.expr] = []
    if not pointwise(function, value, mask, stands, bases):
        return False
    return fits or not bases or any(same_rank(site, function, mask, base) for base in bases)


def pointwise(
    function: Function, value: ast.expr, mask: ast.expr, stands: ast.expr | None, bases: list[ast.expr]
) -> bool:
    """Whether a value is made element by element of selections by this mask and of numbers, whatever their shapes are.

    `bases` gets the tensors that are selected from; `stands` is the use of a name that stands for a selection.
    """
    if value is stands or one_value(function, function.fact(value), value):
        return True
    if isinstance(value, ast.Subscript):
        bases.append(value.value)
        return function.same(value.slice, mask) and function.pure(value.value)
    parts: list[ast.expr]
    if isinstance(value, ast.BinOp) and not isinstance(value.op, ast.MatMult):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Compare) and len(value.ops) == 1 and not isinstance(value.ops[0], NOT_ELEMENTWISE):
        parts = [value.left, value.comparators[0]]
    elif isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.USub, ast.Invert)):
        parts = [value.operand]
    else:
        op = function.op(value)
        alone = op is not None and (cast(function, op) or (op.name in FILLED and not op.args and not op.keywords))
        if op is None or not (alone or (op.name in ELEMENTWISE and not op.keywords)):
            return False
        parts = [op.base] if alone else [op.base, *op.args]
    return all(pointwise(function, part, mask, stands, bases) for part in parts)


def cast(function: Function, op: TorchCall) -> bool:
    """Whether an operation only gives a tensor another dtype that is written out: `x.to(torch.float32)`."""
    given = [*op.args, *(v for k, v in op.keywords.items() if k == "dtype")]
    if op.name not in ("to", "type") or len(given) != 1 or len(op.args) + len(op.keywords) != 1:
        return False
    return (function.dotted(given[0]) or "").removeprefix("torch.") in DTYPES


def real(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor surely holds real numbers: a loss, what goes back alone, or made of what only such numbers have."""
    made = function.value(tensor)
    if function.fact(made).dtype in (Dtype.INT, Dtype.BOOL) or goes_back(function, tensor):
        return True
    if isinstance(made, ast.BinOp) and not isinstance(made.op, ast.MatMult):
        return all(is_number(function, part) or real(function, part) for part in (made.left, made.right))
    maker = function.maker(made.func) if isinstance(made, ast.Call) else None  # criterion = nn.CrossEntropyLoss()
    name, op = function.dotted(maker.func) if maker is not None else None, function.op(made)
    if (name or "").startswith("torch.nn.") and (name or "").endswith("Loss"):
        return True
    if op is None or function.fact(made).dtype is not Dtype.FLOAT:
        return False
    if op.name in REAL or op.name in LOSSES or (cast(function, op) and "complex" not in function.file.text(made)):
        return True
    return op.name in (*REDUCING, *ELEMENTWISE, "prod", "std", "var") and real(function, op.base)


def goes_back(function: Function, tensor: ast.expr) -> bool:
    """Whether this is a name on which `.backward()` is called: that is an error of complex numbers."""
    if not isinstance(tensor, ast.Name) or (made := function.reaching_definition(tensor)) is None:
        return False
    uses = function.seen_by(made)
    calls = (n for n in function.every(ast.Call) if isinstance(n.func, ast.Attribute) and n.func.attr == "backward")
    return any(call.func.value in uses and not call.args and not call.keywords for call in calls)


def one_device(function: Function, tensors: Sequence[ast.expr]) -> bool:
    """Whether tensors surely live on one device: all are made of one name, by what needs no other tensor."""
    roots = {_made_of(function, tensor) for tensor in tensors}
    return len(roots) == 1 and None not in roots


def _made_of(function: Function, tensor: ast.expr) -> tuple[str, int] | None:
    match tensor, function.op(tensor):
        case ast.Name(id=name), _:
            made = function.reaching_definition(tensor)
            inner = (
                _made_of(function, made.value) if made is not None and not isinstance(made.value, ast.Name) else None
            )
            if made is None:  # bound on some paths only, it may be another tensor at each use
                return (name, 0) if function.untouched(tensor) else None
            return inner or (name, id(made))
        case ast.BinOp(left=left, right=right), _:
            kept = [part for part in (left, right) if function.constant(part) is None]
            return _made_of(function, kept[0]) if len(kept) == 1 else None
        case ast.UnaryOp(operand=operand), _:
            return _made_of(function, operand)
        case _, op if op is not None and op.name in {
            *REDUCING,
            *ELEMENTWISE,
            *REAL,
            "prod",
            "std",
            "var",
            "flatten",
            "view",
        }:
            given = [*op.args, *op.keywords.values()]
            return _made_of(function, op.base) if not any(function.fact(g).is_tensor for g in given) else None
    return None


def is_number(function: Function, node: ast.expr) -> bool:
    """Whether an operand leaves the other's shape as it is: a number, or a tensor without dimensions."""
    fact = function.fact(node)
    return function.constant(node) is not None or fact.kind is Value.SCALAR or (fact.is_tensor and fact.ndim == 0)


def same_rank(site: Site, function: Function, mask: ast.expr, base: ast.expr) -> bool:
    """Whether a mask has as many dimensions as what it selects from: in code that runs, then their shapes are equal."""
    a, b = site.fact_of(mask), site.fact_of(base)
    return (a.ndim is not None and a.ndim == b.ndim) or same_shape(function, mask, base)


def of_rows(function: Function, mask: ast.expr) -> bool:
    """Whether a mask is made by reducing a dimension, `x.sum(dim=1) > 0`: then it keeps rows of x, not elements."""
    calls = (function.op(n) for n in ast.walk(function.value(mask)) if isinstance(n, ast.Call))
    return any(op is not None and op.name in REDUCING and (op.args or "dim" in op.keywords) for op in calls)


def is_mask(fact: Fact) -> bool:
    """Whether an index is surely a bool tensor: an integer one gathers. A comparison by which a tensor is indexed is one."""
    return fact.dtype is Dtype.BOOL and (fact.kind is Value.TENSOR or fact.ref is Tag.COMPARED)


def may_be_mask(fact: Fact) -> bool:
    """Whether an index is a mask, surely or by what it is called: a tensor whose dtype is not known."""
    return is_mask(fact) or (fact.kind is Value.TENSOR and fact.dtype is Dtype.UNKNOWN)


def taken_for_mask(node: ast.expr, fact: Fact) -> bool:
    """Whether an index of which nothing else is known is called a mask, as no list of positions is: `data.train_mask`."""
    return fact.kind in (Value.UNKNOWN, Value.TENSOR) and fact.dtype is Dtype.UNKNOWN and mask_like(node) == 2


def one_value(function: Function, fact: Fact, node: ast.expr) -> bool:
    """Whether an expression is surely a Python number."""
    return function.constant(node) is not None or (fact.kind is Value.SCALAR and fact.confidence >= 2)


def no_dimensions(function: Function, node: ast.expr) -> bool:
    """Whether a tensor surely has no dimensions."""
    fact, value = function.fact(node), function.value(node)
    if fact.is_tensor and fact.ndim == 0:
        return True
    name = function.dotted(value.func) if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or name is None or not name.startswith("torch.nn.functional."):
        return False
    how = next((k.value for k in value.keywords if k.arg == "reduction"), None)
    reduced = isinstance(how, ast.Constant) and how.value in ("mean", "sum")
    return reduced and (name.endswith("_loss") or "cross_entropy" in name)
