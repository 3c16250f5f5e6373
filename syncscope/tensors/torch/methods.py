"""Methods of tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Device, Fact
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    BATCH,
    BOOL,
    DEFAULT,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    FLOATING,
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
    array,
    device_of,
    items,
    tensor,
)
from syncscope.tensors.frame import Frame, holds_tensor, last_word, on_host_here
from syncscope.tensors.torch.hidden_reads import INSIDE, read_inside
from syncscope.tensors.torch.host_values import chosen_from_host, copied_in
from syncscope.tensors.torch.results import (
    device_named,
    dimensions,
    dtype_given,
    flag,
    names_dim,
    nonzero_result,
    one_less,
    repeated,
    scalar_slots,
    unique_result,
    where_made,
)
from syncscope.tensors.torch.signatures import (
    DTYPE_OF,
    FACTORIES,
    LINALG_CHECKED_METHODS,
    PAIRED,
    method,
)

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


_CASTS = {
    "float": FLOAT,
    "double": FLOAT,
    "half": FLOAT,
    "bfloat16": FLOAT,
    "long": INT,
    "int": INT,
    "short": INT,
    "bool": BOOL,
    "byte": INT,
    "char": INT,
}


_READS = {"item": NUMBER, "__bool__": TRUTH, "__float__": FLOATING, "__int__": INTEGER, "__index__": INTEGER}


def tensor_method(
    frame: Frame,
    node: ast.Call,
    func: ast.expr,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
    nodes: list[ast.expr],
) -> Fact:
    """A method of a tensor."""
    receiver = func.value if isinstance(func, ast.Attribute) else None
    handler = METHODS.get(word)
    if handler is not None:
        return handler(frame, node, receiver, word, owner, args, keywords)
    if word == "size" or word == "stride":
        return INTEGER if args or keywords else SIZE
    signature = method(word)
    if signature is None:
        if word == "type_as" or word == "type":
            return Fact(TENSOR, ANY_DTYPE, owner.device, owner.shape, owner.ndim, owner.confidence, node, source=owner)
        return UNKNOWN
    back = signature.back
    scalar_slots(frame, node, word, args, keywords, 1)
    if word in INSIDE:
        read_inside(frame, node, word, owner, args, keywords, 1)
    elif word == "copy_" and args and not flag(node, "non_blocking"):
        copied_in(frame, node, node.args[0], owner, args[0])
    elif word == "where" and len(args) == 2:
        chosen_from_host(frame, node, args[0], [(node.args[1], args[1]), (node.args[1], owner)])
    if word in LINALG_CHECKED_METHODS:
        # Operators of other libraries have methods of these names, too.
        frame.emit(
            "linalg_check", node, receiver, owner, 2 if owner.confidence == 3 or word in ("inverse", "pinverse") else 1
        )
    device = owner.device
    if device is HOST:
        device = device_of(owner, *args) if args else HOST
    dtype = DTYPE_OF.get(word) or owner.dtype
    if word in ("sum", "cumsum", "prod") and dtype is BOOL:
        dtype = INT
    elif word in ("new_zeros", "new_ones", "new_full", "new_empty", "sum", "cumsum") or word == "to":
        given = dtype_given(keywords)
        dtype = given if given is not ANY_DTYPE else dtype
        device = where_made(frame, node, keywords, device)
    if dtype is BOOL and word in ("mul", "add"):
        dtype = INT
    shape = owner.shape
    if any(a.kind is TENSOR and a.shape is DYNAMIC for a in args):
        shape = DYNAMIC
    if word.endswith("_") and not word.endswith("__"):
        return Fact(TENSOR, owner.dtype, device, owner.shape, owner.ndim, owner.confidence, node, source=owner)
    if "T" in back and ("TT" not in back or not names_dim(word, node, args, keywords, 0)):
        if word.startswith("new_"):
            ndim = (
                len(args[0].elements) or None
                if args and args[0].kind is SEQUENCE
                else len(args)
                if args and args[0].kind is SCALAR and word != "new_full"
                else None
            )
            return Fact(TENSOR, dtype, device, ANY_SHAPE, ndim, owner.confidence, node, source=owner)
        return Fact(
            TENSOR,
            dtype,
            device,
            shape,
            dimensions(word, owner, node, args, keywords, 0),
            owner.confidence,
            node,
            source=owner,
        )
    if word in PAIRED or back[0].startswith("TT"):
        ndim = (
            owner.ndim
            if word in ("sort", "topk", "cummax", "cummin") or flag(node, "keepdim")
            else one_less(owner)
            if word in ("max", "min", "median", "mode")
            else None
        )
        values = Fact(TENSOR, dtype, device, shape, ndim, owner.confidence, node, source=owner)
        rest = Fact(TENSOR, INT if word in PAIRED else dtype, device, shape, ndim, owner.confidence, node, source=owner)
        return Fact(SEQUENCE, confidence=3, elements=(values, *[rest] * (max(len(b) for b in back) - 1)))
    if "L" in back:
        return items(
            Fact(
                TENSOR,
                dtype,
                device,
                shape,
                one_less(owner) if word == "unbind" else owner.ndim,
                owner.confidence,
                node,
                source=owner,
            )
        )
    return TRUTH if "B" in back else INTEGER if "N" in back else UNKNOWN


Method = Callable[[Frame, ast.Call, ast.expr | None, str, Fact, list[Fact], Keywords], Fact]


def _m_item(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if owner.confidence == 1 and word == "item" and "loss" in last_word(receiver).lower():
        owner = owner.but(confidence=2)
    frame.emit(
        "item" if word == "item" else {"__bool__": "bool", "__float__": "float", "__int__": "int"}.get(word, "index"),
        node,
        receiver,
        owner,
    )
    frame.work = False
    return Fact(SCALAR, owner.dtype, HOST, confidence=3) if owner.dtype is not ANY_DTYPE else NUMBER


def _surely_read(frame: Frame, receiver: ast.expr | None) -> None:
    """`.cpu()` of something unknown: when it is read in one go with `.numpy()` or `.tolist()`, it was a tensor."""
    found = frame.waits.get((id(receiver), "cpu")) if frame.waits is not None else None
    if found is not None and found.confidence == 1 and not frame.guarded:
        frame.waits[(id(receiver), "cpu")] = found._replace(confidence=2)  # type: ignore[index]  # it was found there


def _m_tolist(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    _surely_read(frame, receiver)
    frame.emit("tolist", node, receiver, owner)
    frame.work = False
    return NUMBERS


def _m_numpy(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    _surely_read(frame, receiver)
    if owner.device is DEVICE:
        frame.emit("numpy", node, receiver, owner)
        frame.work = False
    elif receiver is not None:
        on_host_here(frame, receiver, owner)
    return array(owner)


def _m_cpu(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if not flag(node, "non_blocking"):
        if owner.device is HOST and _of_a_batch(owner):
            owner = owner.but(device=SOMEWHERE)  # whoever copies it to the host met one that was not there
        if owner.confidence == 1 and isinstance(receiver, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            owner = owner.but(confidence=2)  # no module or container can be calculated with
        frame.emit("cpu", node, receiver, owner)
        frame.work = False
    return Fact(TENSOR, owner.dtype, HOST, owner.shape, owner.ndim, owner.confidence, node, source=owner)


def _m_to(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if word == "cuda":
        target: Device | None = DEVICE
        dtype = owner.dtype
    else:
        target = None
        dtype = dtype_given(keywords)
        named_: ast.expr | None = next((k.value for k in node.keywords if k.arg == "device"), None)
        if named_ is not None:
            target = device_named(named_, keywords["device"], owner.device)
        for at, fact in zip(node.args, args, strict=False):
            if fact.kind is TENSOR:
                target, dtype = fact.device, fact.dtype
            elif fact.ref == "torch.dtype" or (
                (isinstance(fact.ref, str) and fact.ref.startswith(("builtins.", "torch.")))
                and fact.ref != "torch.device"
            ):
                dtype = dtype_given({"dtype": fact})
            elif (
                fact.ref == "torch.device"
                or isinstance(at, ast.Constant)
                or (target is None and fact.kind in (NOTHING_KNOWN, SCALAR, OTHER))
            ):
                if isinstance(at, ast.Constant) and isinstance(at.value, bool):
                    continue
                said = at.func if isinstance(at, ast.Call) else at
                word_ = said.attr if isinstance(said, ast.Attribute) else getattr(said, "id", "")
                if "dtype" not in word_:
                    target = device_named(at, fact, owner.device)
        if dtype is ANY_DTYPE and "dtype" not in keywords and not any(f.ref == "torch.dtype" for f in args):
            dtype = owner.dtype
    where = owner.device if target is None else target
    sided = any(f.kind is TENSOR for f in args) or any(
        isinstance(at, ast.Attribute) and at.attr == "device" for at in (*node.args, *(k.value for k in node.keywords))
    )
    blocking = not flag(node, "non_blocking") and not (
        len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and node.args[1].value is True
    )
    if target is HOST and owner.device is not HOST:
        if blocking:
            # Beside another tensor it most often is there already: only where it surely lives elsewhere is it copied.
            frame.emit("cpu", node, receiver, owner, 1 if sided and owner.device is SOMEWHERE else 3)
    elif owner.device is SOMEWHERE and blocking and not sided and target in (DEVICE, SOMEWHERE) and _of_a_batch(owner):
        moved = owner.but(device=target, confidence=2)
        frame.emit("to_device", node, receiver, moved, 2)
    elif target is DEFAULT:
        if owner.device in (SOMEWHERE, DEVICE) and blocking and not sided:
            frame.emit("cpu", node, receiver, owner, 2)
    elif target is not None and owner.device is HOST and target is not HOST and blocking:
        moved = Fact(
            TENSOR,
            owner.dtype,
            target,
            owner.shape,
            owner.ndim,
            owner.confidence,
            owner.provenance,
            source=owner.source,
        )
        made = (
            isinstance(receiver, ast.Call)
            and isinstance(receiver.func, ast.Attribute)
            and receiver.func.attr in FACTORIES
        )
        confidence = 3 if target is DEVICE else 2 if sided else 1
        frame.emit("created_on_host" if made else "to_device", node, receiver, moved, confidence)
    elif (
        target is SOMEWHERE
        and owner.device is SOMEWHERE
        and not sided
        and blocking
        and word == "to"
        and not _made_there(node, owner)
    ):
        frame.emit("to_device", node, receiver, owner, 1)  # nothing is known of either side
    return Fact(TENSOR, dtype, where, owner.shape, owner.ndim, owner.confidence, node, source=owner)


def _made_there(node: ast.Call, fact: Fact | None) -> bool:
    """Whether the tensor was made, or moved before, with the very words that now say where it is to be."""
    to = {ast.dump(at) for at in (*node.args, *(k.value for k in node.keywords if k.arg == "device"))}
    for _ in range(8):
        if fact is None:
            return False
        said = fact.provenance
        if isinstance(said, ast.Call) and said is not node:
            moved = said.args if getattr(said.func, "attr", "") == "to" else []
            if to & {ast.dump(at) for at in (*moved, *(k.value for k in said.keywords if k.arg == "device"))}:
                return True
        fact = fact.source
    return False


def _of_a_batch(fact: Fact) -> bool:
    """Whether it is part of what people call a loader's: batches are made on the host."""
    source = fact.source
    while source is not None and source.kind is TENSOR and fact.provenance == () and source.provenance == ():  # joined
        source = source.source
    return source is not None and source.kind is BATCH and fact.provenance == ()


def _m_dynamic(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit(word, node, receiver, owner)
    if word == "nonzero":
        return nonzero_result(node, owner, owner.confidence)
    if word in ("unique", "unique_consecutive"):
        return unique_result(node, owner, owner.confidence)
    dtype = INT if word in ("argwhere", "bincount") else owner.dtype
    return tensor(dtype, owner.device, owner.confidence, node, owner, DYNAMIC, 2 if word == "argwhere" else 1)


def _m_repeat(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    repeats = args[0] if args else keywords.get("repeats", UNKNOWN)
    return repeated(frame, node, owner, repeats, keywords)


def _m_equal(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit(word, node, receiver, owner)
    return TRUTH


def _m_sparse(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("sparse", node, receiver, owner, 2)
    return Fact(
        TENSOR,
        owner.dtype,
        owner.device,
        DYNAMIC if word != "to_dense" else owner.shape,
        owner.ndim,
        owner.confidence,
        node,
        source=owner,
    )


def _m_cast(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    return Fact(TENSOR, _CASTS[word], owner.device, owner.shape, owner.ndim, owner.confidence, node, source=owner)


def _m_nothing(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    if word == "backward":
        frame.work = True
        return NONE
    return INTEGER


def _m_multinomial(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    frame.emit("multinomial", node, receiver, owner, 1)
    return tensor(INT, owner.device, owner.confidence, node, owner, owner.shape, owner.ndim)


def _m_split(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    sizes = args[0] if args else UNKNOWN
    held = holds_tensor(sizes)
    if held is not None:
        frame.emit("size", node, node.args[0], held)
    return items(Fact(TENSOR, owner.dtype, owner.device, owner.shape, owner.ndim, owner.confidence, node, source=owner))


def _m_new_tensor(
    frame: Frame,
    node: ast.Call,
    receiver: ast.expr | None,
    word: str,
    owner: Fact,
    args: list[Fact],
    keywords: Keywords,
) -> Fact:
    """`x.new_tensor(0.5)`: a Python value, copied to where `x` lives."""
    device = where_made(frame, node, keywords, owner.device)
    value = args[0] if args else UNKNOWN
    if value.kind in (SCALAR, SEQUENCE) and device is not HOST:
        made = tensor(device=device, confidence=owner.confidence, why=node, source=owner)
        frame.emit("tensor_literal", node, node.args[0], made, 3 if device is DEVICE else 2)
    dtype = dtype_given(keywords)
    ndim = 0 if value.kind is SCALAR else None
    return tensor(dtype if dtype is not ANY_DTYPE else owner.dtype, device, owner.confidence, node, owner, FIXED, ndim)


METHODS: dict[str, Method] = {
    **dict.fromkeys(_READS, _m_item),
    "tolist": _m_tolist,
    "numpy": _m_numpy,
    "__array__": _m_numpy,
    "cpu": _m_cpu,
    "to": _m_to,
    "cuda": _m_to,
    **dict.fromkeys(("nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount"), _m_dynamic),
    "repeat_interleave": _m_repeat,
    **dict.fromkeys(("equal", "allclose", "is_nonzero"), _m_equal),
    **dict.fromkeys(
        ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "coalesce"), _m_sparse
    ),
    **dict.fromkeys(_CASTS, _m_cast),
    **dict.fromkeys(
        ("backward", "numel", "dim", "nelement", "ndimension", "stride", "get_device", "data_ptr", "element_size"),
        _m_nothing,
    ),
    "multinomial": _m_multinomial,
    "new_tensor": _m_new_tensor,
    "split": _m_split,
    "tensor_split": _m_split,
}
