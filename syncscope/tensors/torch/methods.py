"""Methods of tensors: those that wait or move, one by one; all others by their schema."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.tensors import conventions
from syncscope.tensors.call import Call, device_meant, dtype_meant
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    BATCH,
    BOOL,
    DEFAULT,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    NONE,
    NUMBER,
    NUMBERS,
    OTHER,
    SCALAR,
    SEQUENCE,
    SIZE,
    SOMEWHERE,
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
from syncscope.tensors.frame import given_to_numpy
from syncscope.tensors.syntax import last_word, name_of
from syncscope.tensors.torch.hidden_reads import INSIDE, read_inside
from syncscope.tensors.torch.host_values import chosen_from_host, copied_in
from syncscope.tensors.torch.results import (
    dimensions,
    distinct,
    names_dim,
    one_less,
    positions,
    repeated,
    scalar_slots,
)
from syncscope.tensors.torch.signatures import (
    DTYPE_OF,
    FACTORIES,
    LINALG_CHECKED_METHODS,
    PAIRED,
    Gives,
    Signature,
    method,
)

NOTHING_KNOWN = UNKNOWN.kind
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
    return _type(call) if word == "type" else UNKNOWN


def by_schema(call: Call, signature: Signature) -> Fact:
    """A method whose result its schema tells."""
    word, owner, args, gives = call.word, call.receiver, call.args, signature.gives
    scalar_slots(call, word, 1)
    if word in INSIDE:
        read_inside(call, owner, 1)
    elif word == "copy_" and args and not call.flag("non_blocking"):
        copied_in(call.frame, call.node, call.nodes[0], owner, args[0])
    elif word == "where" and len(args) == 2:
        chosen_from_host(call, args[0], (call.nodes[1], args[1]), (call.nodes[1], owner))
    if word in LINALG_CHECKED_METHODS:
        # Operators of other libraries have methods of these names, too.
        sure = owner.confidence == 3 or word in ("inverse", "pinverse")
        call.emit(Op.LINALG_CHECK, call.at, owner, 2 if sure else 1)
    device = owner.device
    if device is HOST and args:
        device = device_of(owner, *args)
    if word.endswith("_") and not word.endswith("__"):
        return call.result(device=device)
    dtype, device = _made_as(call, device)
    shape = DYNAMIC if any(a.kind is TENSOR and a.shape is DYNAMIC for a in args) else owner.shape
    pair = Gives.TENSORS in gives
    if Gives.TENSOR in gives and not (pair and names_dim(call, 0)):
        if word.startswith("new_"):
            shape, ndim = ANY_SHAPE, _sizes_given(call)
        else:
            ndim = dimensions(call, owner, 0)
        return call.result(dtype=dtype, device=device, shape=shape, ndim=ndim)
    if word in PAIRED or (pair and Gives.TENSOR not in gives):
        if word in ("sort", "topk", "cummax", "cummin") or call.flag("keepdim"):
            ndim = owner.ndim
        else:
            ndim = one_less(owner) if word in ("max", "min", "median", "mode") else None
        values = call.result(dtype=dtype, device=device, shape=shape, ndim=ndim)
        rest = call.result(dtype=INT if word in PAIRED else dtype, device=device, shape=shape, ndim=ndim)
        return sequence(values, *[rest] * (signature.width - 1))
    if Gives.LIST in gives:
        ndim = one_less(owner) if word == "unbind" else owner.ndim
        return items(call.result(dtype=dtype, device=device, shape=shape, ndim=ndim))
    return TRUTH if Gives.TRUTH in gives else INTEGER if Gives.NUMBER in gives else UNKNOWN


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
    if owner.confidence == 1 and call.word == "item" and conventions.is_loss(last_word(call.at)):
        owner = owner.but(confidence=2)
    call.emit(_READS[call.word], call.at, owner)
    call.frame.work = False
    return Fact(SCALAR, owner.dtype, HOST, confidence=3) if owner.dtype is not ANY_DTYPE else NUMBER


def _surely_read(call: Call) -> None:
    """`.cpu()` of something unknown: when it is read in one go with `.numpy()` or `.tolist()`, it was a tensor."""
    waits, key = call.frame.waits, (id(call.at), Op.CPU)
    found = waits.get(key) if waits is not None else None
    if waits is not None and found is not None and found.confidence == 1 and not call.frame.guarded:
        waits[key] = found._replace(confidence=2)


def _tolist(call: Call) -> Fact:
    _surely_read(call)
    call.emit(Op.TOLIST, call.at, call.receiver)
    call.frame.work = False
    return NUMBERS


def _numpy(call: Call) -> Fact:
    _surely_read(call)
    if call.receiver.device is DEVICE:
        call.emit(Op.NUMPY, call.at, call.receiver)
        call.frame.work = False
    elif call.at is not None:
        given_to_numpy(call.frame, call.at, call.receiver)
    return array(call.receiver)


def _cpu(call: Call) -> Fact:
    owner = call.receiver
    if not call.flag("non_blocking"):
        if owner.device is HOST and _of_a_batch(owner):
            owner = owner.but(device=SOMEWHERE)  # whoever copies it to the host met one that was not there
        if owner.confidence == 1 and isinstance(call.at, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            owner = owner.but(confidence=2)  # no module or container can be calculated with
        call.emit(Op.CPU, call.at, owner)
        call.frame.work = False
    return call.result(owner, device=HOST)


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


def _multinomial(call: Call) -> Fact:
    call.emit(Op.MULTINOMIAL, call.at, call.receiver, 1)
    return call.result(dtype=INT)


def _split(call: Call) -> Fact:
    held = holds_tensor(call.first)
    if held is not None:
        call.emit(Op.SIZE, call.first_node, held)
    return items(call.result())


# -- those that move


def _to(call: Call) -> Fact:
    """`x.to(...)`, `x.cuda(...)`: a copy for which the host waits, one way or the other; or another dtype alone."""
    owner = call.receiver
    target, dtype = (DEVICE, owner.dtype) if call.word == "cuda" else _asked_for(call)
    # Beside another tensor it most often is there already: only where it surely lives elsewhere is it copied.
    beside = any(f.kind is TENSOR for f in call.args) or any(
        isinstance(at, ast.Attribute) and at.attr == "device"
        for at in (*call.nodes, *(k.value for k in call.node.keywords))
    )
    second = call.nodes[1] if len(call.nodes) > 1 else None
    if not call.flag("non_blocking") and not (isinstance(second, ast.Constant) and second.value is True):
        _copied(call, target, beside)
    return call.result(dtype=dtype, device=owner.device if target is None else target)


def _asked_for(call: Call) -> tuple[Device | None, Dtype]:
    """The device and the dtype that the arguments of `.to` name; no device: it stays where it is."""
    owner, keywords = call.receiver, call.keywords
    target: Device | None = None
    dtype = call.dtype_given()
    named = next((k.value for k in call.node.keywords if k.arg == "device"), None)
    if named is not None:
        target = device_meant(named, keywords["device"], owner.device)
    for at, fact in zip(call.nodes, call.args, strict=False):
        if fact.kind is TENSOR:
            target, dtype = fact.device, fact.dtype
        elif _is_dtype(fact):
            dtype = dtype_meant(fact)
        elif isinstance(at, ast.Constant) and isinstance(at.value, bool):
            continue
        elif (
            fact.ref is Tag.DEVICE
            or isinstance(at, ast.Constant)
            or (target is None and fact.kind in (NOTHING_KNOWN, SCALAR, OTHER))
        ):
            said = at.func if isinstance(at, ast.Call) else at
            word = name_of(said)
            if "dtype" not in word:
                target = device_meant(at, fact, owner.device)
    if dtype is ANY_DTYPE and "dtype" not in keywords and not any(f.ref is Tag.DTYPE for f in call.args):
        dtype = owner.dtype
    return target, dtype


def _is_dtype(fact: Fact) -> bool:
    ref = fact.ref
    return ref is Tag.DTYPE or (
        isinstance(ref, str) and ref.startswith(("builtins.", "torch.")) and ref is not Tag.DEVICE
    )


def _copied(call: Call, target: Device | None, beside: bool) -> None:
    owner, at = call.receiver, call.at
    lost = owner.device is SOMEWHERE and not beside
    if target is HOST:
        if owner.device is not HOST:
            call.emit(Op.CPU, at, owner, 1 if beside and owner.device is SOMEWHERE else 3)
    elif lost and target in (DEVICE, SOMEWHERE) and _of_a_batch(owner):
        call.emit(Op.TO_DEVICE, at, owner.but(device=target, confidence=2), 2)
    elif target is DEFAULT:
        if owner.device in (SOMEWHERE, DEVICE) and not beside:
            call.emit(Op.CPU, at, owner, 2)
    elif target is not None and owner.device is HOST:
        made = isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr in FACTORIES
        confidence = 3 if target is DEVICE else 2 if beside or made else 1
        call.emit(Op.CREATED_ON_HOST if made else Op.TO_DEVICE, at, owner.but(device=target), confidence)
    elif target is SOMEWHERE and lost and call.word == "to" and not _made_there(call.node, owner):
        call.emit(Op.TO_DEVICE, at, owner, 1)  # nothing is known of either side


def _type(call: Call) -> Fact:
    """`x.type(torch.float)` converts; a class of the host, `x.type(torch.FloatTensor)`, copies it there."""
    ref = call.first.ref
    if isinstance(ref, str) and ref.startswith("torch.") and ref.endswith("Tensor") and ".cuda." not in ref:
        _copied(call, HOST, beside=False)
        return call.result(dtype=dtype_meant(call.first), device=HOST)
    return call.result(dtype=ANY_DTYPE)


def _type_as(call: Call) -> Fact:
    """`x.type_as(y)`: the dtype of `y`, where `y` lives."""
    owner, other = call.receiver, call.first
    if other.kind is not TENSOR:
        return call.result(dtype=ANY_DTYPE)
    if owner.device is HOST and other.device is not HOST:
        _copied(call, other.device, beside=True)
    return call.result(dtype=other.dtype, device=device_of(owner, other))


def _made_there(node: ast.Call, fact: Fact | None) -> bool:
    """Whether the tensor was made, or moved before, with the very words that now say where it is to be."""
    to = {ast.unparse(at) for at in (*node.args, *(k.value for k in node.keywords if k.arg == "device"))}
    for _ in range(8):
        if fact is None:
            return False
        said = fact.provenance
        if isinstance(said, ast.Call) and said is not node:
            moved = said.args if getattr(said.func, "attr", "") == "to" else []
            if to & {ast.unparse(at) for at in (*moved, *(k.value for k in said.keywords if k.arg == "device"))}:
                return True
        fact = fact.source
    return False


def _of_a_batch(fact: Fact) -> bool:
    """Whether it is part of what people call a loader's: batches are made on the host."""
    source = fact.source
    while source is not None and source.kind is TENSOR and fact.provenance == () and source.provenance == ():  # joined
        source = source.source
    return source is not None and source.kind is BATCH and fact.provenance == ()


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


SPECIAL: dict[str, Method] = {
    **dict.fromkeys(_READS, _item),
    "tolist": _tolist,
    **dict.fromkeys(("numpy", "__array__"), _numpy),
    "cpu": _cpu,
    **dict.fromkeys(("to", "cuda"), _to),
    "type_as": _type_as,
    **dict.fromkeys(("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount"), _dynamic),
    "repeat_interleave": _repeat_interleave,
    **dict.fromkeys(("equal", "allclose", "is_nonzero"), _compared),
    **dict.fromkeys(
        ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "coalesce"), _sparse
    ),
    **dict.fromkeys(_CASTS, _cast),
    "backward": _backward,
    **dict.fromkeys(
        ("numel", "dim", "nelement", "ndimension", "stride", "get_device", "data_ptr", "element_size"),
        lambda _: INTEGER,
    ),
    "size": lambda call: INTEGER if call.args or call.keywords else SIZE,
    "multinomial": _multinomial,
    "new_tensor": _new_tensor,
    **dict.fromkeys(("split", "tensor_split"), _split),
}
