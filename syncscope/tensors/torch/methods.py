"""Methods of tensors: those that wait one by one, those that move from `moves`; all others by their schema."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact, Shape
from syncscope.model.ops import Op
from syncscope.project.syntax import dotted
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    BOOL,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    NONE,
    NOTHING_KNOWN,
    NUMBER,
    NUMBERS,
    SCALAR,
    SEQUENCE,
    SIZE,
    TENSOR,
    TRUTH,
    Tag,
    array,
    device_of,
    holds_tensor,
    items,
    like,
    sequence,
)
from syncscope.tensors.frame import Frame, of_host
from syncscope.tensors.torch.hidden_reads import INSIDE, read_inside
from syncscope.tensors.torch.host_values import chosen_from_host, copied_in
from syncscope.tensors.torch.moves import converted, like_another, to, to_the_host
from syncscope.tensors.torch.ranks import dimensions
from syncscope.tensors.torch.results import (
    bounds,
    distinct,
    names_dim,
    of_pair,
    one_less,
    positions,
    repeated,
    scalar_slots,
)
from syncscope.tensors.torch.signatures import (
    DTYPE_OF,
    LINALG_CHECKED_METHODS,
    PAIRED,
    Signature,
    method,
)

Method = Callable[[Call], Fact]


def tensor_method(call: Call) -> Fact:
    """A method of a tensor, the receiver of the call."""
    word = call.word
    handler = SPECIAL.get(word)
    if handler is not None:
        return handler(call)
    signature = method(word)
    if signature is not None:
        return by_schema(call, signature)
    return converted(call) if word == "type" else UNKNOWN


_SHAPED_AS = frozenset(("expand_as", "view_as", "reshape_as"))  # of another they have the shape alone


def by_schema(call: Call, signature: Signature) -> Fact:
    """A method whose result its schema tells."""
    word, owner, args = call.word, call.receiver, call.args
    _reads(call)
    device = owner.device
    if device is HOST and args and word not in _SHAPED_AS:
        device = device_of(owner, *args)
    if word.endswith("_") and not word.endswith("__"):
        return call.result(device=device)
    dtype, device = _made_as(call, device)
    shape = DYNAMIC if any(a.kind is TENSOR and a.shape is DYNAMIC for a in args) else owner.shape

    def made(ndim: int | None, dtype: Dtype = dtype, shape: Shape = shape) -> Fact:
        return call.result(dtype=dtype, device=device, shape=shape, ndim=ndim)

    pair = signature.tensors
    if signature.tensor and not (pair and names_dim(call, 0)):
        if word.startswith("new_"):
            return made(_sizes_given(call), shape=ANY_SHAPE)
        return made(dimensions(call, owner, 0))
    if word in PAIRED or (pair and not signature.tensor):
        ndim = of_pair(call, owner)
        return sequence(made(ndim), *[made(ndim, INT if word in PAIRED else dtype)] * (signature.width - 1))
    if signature.listed:
        return items(made(one_less(owner) if word == "unbind" else owner.ndim))
    return TRUTH if signature.truth else INTEGER if signature.number else UNKNOWN


def _reads(call: Call) -> None:
    """Tell of what a method reads of its tensor, or of what it is given."""
    word, owner, args = call.word, call.receiver, call.args
    scalar_slots(call, word, 1)
    bounds(call, 1)
    if word in INSIDE:
        read_inside(call, owner, 1)
    elif word == "copy_" and args and not call.flag("non_blocking"):
        copied_in(call.frame, call.node, call.nodes[0], owner, args[0])
    if word in LINALG_CHECKED_METHODS:
        # Operators of other libraries have methods of these names, too.
        sure = owner.confidence == 3 or word in ("inverse", "pinverse")
        call.emit(Op.LINALG_CHECK, call.at, owner, 2 if sure else 1)


_TAKE_DTYPE = frozenset("new_zeros new_ones new_full new_empty sum cumsum".split())


def _made_as(call: Call, device: Device) -> tuple[Dtype, Device]:
    word = call.word
    dtype = DTYPE_OF.get(word) or call.receiver.dtype
    if dtype is BOOL and word in ("sum", "cumsum", "prod"):
        return INT, device
    if word in _TAKE_DTYPE:
        given = call.dtype_given()
        dtype = given if given is not ANY_DTYPE else dtype
        device = call.where_made(device)
    if dtype is BOOL and word in ("mul", "add"):
        dtype = INT
    return dtype, device


def _sizes_given(call: Call) -> int | None:
    """The number of dimensions that the sizes given to `x.new_zeros(...)` make."""
    first = call.first
    if first.kind is SEQUENCE:
        return len(first.elements) or None
    return len(call.args) if first.kind is SCALAR and call.word != "new_full" else None


# -- those that wait


_NAMED = {op.value: op for op in Op}  # those that are called as the method is
_READS = {"item": Op.ITEM, "__bool__": Op.BOOL, "__float__": Op.FLOAT, "__int__": Op.INT, "__index__": Op.INDEX}


def _item(call: Call) -> Fact:
    owner = call.receiver
    if owner.confidence < 3 and call.word == "item" and (call.args or call.keywords):
        return UNKNOWN  # a tensor's takes nothing, most often: an entry of a list view
    if owner.confidence == 1 and call.word == "item":
        owner = owner.but(confidence=2)  # nothing but an array has it, and a step holds few of the host's
    call.emit(_READS[call.word], call.at, owner)
    if isinstance(call.at, ast.Subscript):
        _has_one_dimension(call.frame, call.at)
    call.frame.work = False
    return Fact(SCALAR, owner.dtype, HOST, confidence=3) if owner.dtype is not ANY_DTYPE else NUMBER


def _has_one_dimension(frame: Frame, read: ast.Subscript) -> None:
    """Of what `x[-1]` is read as one number, x is a row."""
    path, at = dotted(read.value), read.slice
    at = at.operand if isinstance(at, ast.UnaryOp) else at
    held = frame.env.get(path) if path and isinstance(at, ast.Constant) and isinstance(at.value, int) else None
    if held is not None and held.kind is TENSOR and held.ndim is None:
        frame.env[path] = held.but(ndim=1)


def _surely_read(call: Call) -> None:
    """`.cpu()` of something unknown: when it is read in one go with `.numpy()` or `.tolist()`, it was a tensor.

    Methods of tensors may stand between: `metric(x, y).cpu().detach().numpy()`.
    """
    waits, node = call.frame.waits, call.at
    while waits is not None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found = waits.get((id(node), Op.CPU))
        if found is not None and found.confidence == 1 and not call.frame.guarded:
            waits[id(node), Op.CPU] = found._replace(confidence=2)
        if method(node.func.attr) is None:
            return
        node = node.func.value


def _tolist(call: Call) -> Fact:
    _surely_read(call)
    call.emit(Op.TOLIST, call.at, call.receiver)
    call.frame.work = False
    return NUMBERS.but(dtype=call.receiver.dtype)


def _numpy(call: Call) -> Fact:
    _surely_read(call)
    if call.receiver.device is DEVICE:
        call.emit(Op.NUMPY, call.at, call.receiver)
        call.frame.work = False
    elif call.at is not None:
        of_host(call.frame, call.at, call.receiver)
    return array(call.receiver)


def _dynamic(call: Call) -> Fact:
    owner, op = call.receiver, _NAMED[call.word]
    call.emit(op, call.at, owner)
    if op is Op.NONZERO:
        return positions(call, owner, owner.confidence)
    if op in (Op.UNIQUE, Op.UNIQUE_CONSECUTIVE):
        return distinct(call, owner, owner.confidence)
    dtype = INT if op in (Op.ARGWHERE, Op.BINCOUNT) else owner.dtype
    return call.result(dtype=dtype, shape=DYNAMIC, ndim=2 if op is Op.ARGWHERE else 1)


def _repeat_interleave(call: Call) -> Fact:
    return repeated(call, call.receiver, call.given(0, "repeats"))


def _compared(call: Call) -> Fact:
    call.emit(_NAMED[call.word], call.at, call.receiver)
    return TRUTH


def _sparse(call: Call) -> Fact:
    call.emit(Op.SPARSE, call.at, call.receiver, 2)
    return call.result(shape=DYNAMIC)


_SAME_POSITIONS = frozenset("to cuda cpu clone detach float double half bfloat16".split())


def _is_coalesced(fact: Fact | None) -> bool:
    """Whether a sparse tensor surely was coalesced, and perhaps copied or converted since."""
    while fact is not None and fact.ref is not Tag.COALESCED:
        said = fact.provenance
        same = isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute) and said.func.attr in _SAME_POSITIONS
        fact = fact.source if same else None
    return fact is not None


def _coalesced(call: Call) -> Fact:
    """`x.coalesce()`: what is coalesced is given back as it is."""
    if not _is_coalesced(call.receiver):
        call.emit(Op.SPARSE, call.at, call.receiver, 2)
    made = call.result(shape=DYNAMIC)
    made.ref = Tag.COALESCED
    return made


def _masked_by_sparse(call: Call) -> Fact:
    """`x.sparse_mask(y)`: the positions of `y`."""
    made = call.result()
    made.ref = Tag.COALESCED if _is_coalesced(call.first) else None
    return made


def _multinomial(call: Call) -> Fact:
    call.emit(Op.MULTINOMIAL, call.at, call.receiver, 1)
    return call.result(dtype=INT)


def _split(call: Call) -> Fact:
    held = holds_tensor(call.first)
    if held is not None:
        call.emit(Op.SIZE, call.first_node, held)
    return items(call.result())


# -- the rest


_CASTS = {
    **dict.fromkeys(("float", "double", "half", "bfloat16"), FLOAT),
    **dict.fromkeys(("long", "int", "short", "char"), INT),
    "byte": ANY_DTYPE,  # as an index uint8 is a mask, else a number
    "bool": BOOL,
}


def _cast(call: Call) -> Fact:
    return call.result(dtype=_CASTS[call.word])


def _backward(call: Call) -> Fact:
    call.frame.work = True
    return NONE


def _new_tensor(call: Call) -> Fact:
    """`x.new_tensor(0.5)`: a Python value, copied to where `x` lives."""
    device = call.where_made(call.receiver.device)
    value = call.first
    if value.kind in (SCALAR, SEQUENCE, ARRAY, NOTHING_KNOWN) and device is not HOST:
        made = like(call.receiver, call.node, dtype=ANY_DTYPE, device=device, shape=ANY_SHAPE, ndim=None)
        call.emit(Op.TENSOR_LITERAL, call.first_node, made, 3 if device is DEVICE else 2)
    dtype = call.dtype_given()
    ndim = 0 if value.kind is SCALAR else None
    return call.result(dtype=dtype if dtype is not ANY_DTYPE else None, device=device, shape=FIXED, ndim=ndim)


def _new(call: Call) -> Fact:
    """`x.new([0.5])`: a list, copied to where `x` lives. Of anything else, `x.new(y.size())`, a tensor that lies there."""
    if isinstance(call.first_node, (ast.List, ast.ListComp)):
        return _new_tensor(call)
    return call.result(device=call.where_made(call.receiver.device), shape=ANY_SHAPE, ndim=None)


def _where(call: Call) -> Fact:
    """`x.where(c, y)` is `torch.where(c, x, y)`."""
    owner, args = call.receiver, call.args
    if len(args) == 2:
        chosen_from_host(call, args[0], (call.nodes[1], args[1]), (call.nodes[1], owner))
    held = [each for each in args if each.kind is TENSOR]
    ranks = {each.ndim for each in (owner, *held)}
    device = device_of(owner, *args) if owner.device is HOST else owner.device
    return call.result(device=device, ndim=None if None in ranks else max(filter(None, ranks), default=0))


SPECIAL: dict[str, Method] = {
    "where": _where,
    **dict.fromkeys(_READS, _item),
    "tolist": _tolist,
    **dict.fromkeys(("numpy", "__array__"), _numpy),
    "cpu": to_the_host,
    **dict.fromkeys(("to", "cuda"), to),
    "type_as": like_another,
    **dict.fromkeys(("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount"), _dynamic),
    "repeat_interleave": _repeat_interleave,
    **dict.fromkeys(("equal", "allclose", "is_nonzero"), _compared),
    **dict.fromkeys(("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr"), _sparse),
    "coalesce": _coalesced,
    "sparse_mask": _masked_by_sparse,
    **dict.fromkeys(_CASTS, _cast),
    "backward": _backward,
    **dict.fromkeys(
        ("numel", "dim", "nelement", "ndimension", "stride", "get_device", "data_ptr", "element_size"),
        lambda _: INTEGER,
    ),
    "size": lambda call: INTEGER if call.args or call.keywords else SIZE,
    "multinomial": _multinomial,
    "new_tensor": _new_tensor,
    "new": _new,
    **dict.fromkeys(("split", "tensor_split"), _split),
}
