"""How many dimensions a result of torch has, where what it is made of tells; None where it does not."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project.syntax import text_of
from syncscope.tensors.call import Call
from syncscope.tensors.facts import INTEGER, SCALAR, SEQUENCE, TENSOR
from syncscope.tensors.joins import element
from syncscope.tensors.torch.signatures import LOSSES, REDUCTIONS

_UNTOLD = frozenset("squeeze tile broadcast_to unflatten unfold multi_dot tensordot kron embedding_bag".split())
_ALWAYS = {"indices": 2, "nonzero": 2, "argwhere": 2, "mm": 2, "bmm": 3, "outer": 2, "bincount": 1, "masked_select": 1}
_SAME = frozenset(
    """ReLU GELU SiLU ELU LeakyReLU PReLU Sigmoid Tanh Softmax LogSoftmax Softplus Hardswish Mish ReLU6 Linear LayerNorm
    Identity GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d Dropout
    Dropout2d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool1d MaxPool2d MaxPool3d AvgPool1d
    AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool2d Upsample ZeroPad2d
    ReflectionPad2d RMSNorm TransformerEncoder TransformerEncoderLayer""".split()
)


def dimensions(call: Call, held: Fact | None, at: int) -> int | None:
    """The number of dimensions of a result; `at` is the position after the tensor itself."""
    word, ndim = call.word, held.ndim if held is not None else None
    if word in LOSSES:
        return None if "reduction" in call.keywords else 0
    if word in REDUCTIONS:
        return _reduced(call, ndim, at)
    if word in _ALWAYS:
        return _ALWAYS[word]
    if word in _UNTOLD:
        return None
    special = _OF.get(word)
    return ndim if special is None else special(call, ndim, at)


def parts(call: Call, held: Fact | None) -> int | None:
    """Of each of the tensors that a function gives a list of: `chunk`, `unbind`, `meshgrid`."""
    if call.word == "meshgrid":
        given = len(call.args) if len(call.args) > 1 else len(call.first.elements)
        return None if call.starred else given or None
    ndim = held.ndim if held is not None else None
    return ndim if call.word != "unbind" else None if not ndim else ndim - 1


def of_layer(word: str, args: list[Fact]) -> int | None:
    """Of what a layer of `torch.nn` gives, called so."""
    ndim = args[0].ndim if args and args[0].kind is TENSOR else None
    if word.endswith("Loss"):
        return 0
    if ndim is None:
        return None
    return ndim + 1 if word == "Embedding" else ndim if word in _SAME else None


def _reduced(call: Call, ndim: int | None, at: int) -> int | None:
    word, args, keywords = call.word, call.args, call.keywords
    if len(args) > at and args[at].kind is TENSOR:
        return ndim if word in ("max", "min") else 0 if word in ("dot", "dist") else None
    whole = len(args) <= at or (word in ("norm", "std", "var") and args[at] is not INTEGER)
    if whole and "dim" not in keywords and "axis" not in keywords:
        return 0
    named = args[at] if len(args) > at and args[at].kind is SEQUENCE else keywords.get("dim", UNKNOWN)
    if named.kind is SEQUENCE:
        gone = len(named.elements) or None
    else:
        gone = 1
    return ndim if call.flag("keepdim") else None if ndim is None or gone is None or gone > ndim else ndim - gone


def _more(call: Call, ndim: int | None, at: int) -> int | None:
    return None if ndim is None else ndim + 1


def _less(call: Call, ndim: int | None, at: int) -> int | None:
    return None if ndim is None or not ndim else ndim - 1


def _stacked(call: Call, ndim: int | None, at: int) -> int | None:
    each = element(call.args[0]).ndim if call.args else None
    return None if each is None else each + 1


def _joined(call: Call, ndim: int | None, at: int) -> int | None:
    return element(call.args[0]).ndim if call.args else None


def _sizes(call: Call, ndim: int | None, at: int) -> int | None:
    """As many as there are sizes: `x.view(b, -1)`, `x.expand((4, 3))`."""
    sizes = call.args[at:]
    if call.starred:
        return None
    if len(sizes) == 1:
        if sizes[0].kind is SEQUENCE:
            return len(sizes[0].elements) or None
        return 1 if sizes[0].kind is SCALAR else None
    return len(sizes) if sizes and all(s.kind is not SEQUENCE for s in sizes) else None


def _flattened(call: Call, ndim: int | None, at: int) -> int | None:
    """`x.flatten(1)`, `torch.flatten(x, start_dim=1)`."""
    if len(call.args) <= at and not call.keywords:
        return 1
    start, end = _dim(call, at, "start_dim", 0), _dim(call, at + 1, "end_dim", -1)
    if ndim is None or start is None or end is None:
        return None
    first, last = (each + ndim if each < 0 else each for each in (start, end))
    return ndim - (last - first) if 0 <= first <= last < ndim else None


def _dim(call: Call, at: int, name: str, default: int) -> int | None:
    """A dimension that is written out as a number."""
    node = call.node_of(at, name)
    if node is None:
        return default
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    known = isinstance(inner, ast.Constant) and isinstance(inner.value, int)
    return sign * inner.value if known else None  # type: ignore[attr-defined]  # of a Constant


def _multiplied(call: Call, ndim: int | None, at: int) -> int | None:
    """`a @ b`: a vector loses its dimension, and the others are broadcast."""
    other = call.args[at].ndim if len(call.args) > at and call.args[at].kind is TENSOR else None
    if not ndim or not other:
        return None
    if ndim == 1 or other == 1:
        return max(ndim, other) - 1 - (ndim == other)
    return max(ndim, other)


def _broadcast(call: Call, ndim: int | None, at: int) -> int | None:
    """As many as the largest has: a number has none."""
    known = [0 if fact.kind is SCALAR else fact.ndim if fact.kind is TENSOR else None for fact in call.args]
    return None if None in known or not known else max(each for each in known if each is not None)


def _written_out(call: Call, ndim: int | None, at: int) -> int | None:
    """`einsum("bi,bj->bij", ...)`."""
    text = (text_of(call.nodes[0]) if call.nodes else None) or ""
    left, arrow, right = text.partition("->")
    return len(right.replace(" ", "")) if arrow and "." not in right and left else None


def _one_of_many(call: Call, ndim: int | None, at: int) -> int | None:
    """A quantile: as a reduction, where one number is asked for."""
    asked = call.args[at] if len(call.args) > at else UNKNOWN
    if asked.kind is not SCALAR:
        return None
    if len(call.args) <= at + 1 and "dim" not in call.keywords:
        return 0
    return ndim if call.flag("keepdim") else _less(call, ndim, at)


_OF: dict[str, Callable[[Call, int | None, int], int | None]] = {
    "stack": _stacked,
    **dict.fromkeys(("cat", "concat"), _joined),
    **dict.fromkeys(("unsqueeze", "one_hot", "embedding"), _more),
    **dict.fromkeys(("diagonal", "select"), _less),
    **dict.fromkeys(("view", "reshape", "expand", "repeat"), _sizes),
    **dict.fromkeys(("flatten", "ravel"), _flattened),
    "matmul": _multiplied,
    **dict.fromkeys(("where", "cdist"), _broadcast),
    "einsum": _written_out,
    "diag": lambda call, ndim, at: {1: 2, 2: 1}.get(ndim or 0),
    **dict.fromkeys(("quantile", "nanquantile"), _one_of_many),
}
