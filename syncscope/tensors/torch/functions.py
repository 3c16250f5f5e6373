"""Functions of torch: those that wait or whose result no schema tells, one by one; all others by their schema."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.project.names import named
from syncscope.project.syntax import dotted
from syncscope.tensors.call import Call, device_meant
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    BATCH,
    BOOL,
    DEFAULT,
    DEVICE,
    DYNAMIC,
    FIXED,
    HOST,
    INT,
    INTEGER,
    MODULE,
    NONE,
    NOTHING_KNOWN,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    SIZE,
    SOMEWHERE,
    TENSOR,
    THING,
    TRUTH,
    Items,
    Tag,
    device_of,
    holds_tensor,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.facts import SPREAD as STARRED
from syncscope.tensors.frame import evaluate
from syncscope.tensors.joins import element
from syncscope.tensors.torch.hidden_reads import INSIDE, read_inside
from syncscope.tensors.torch.host_values import chosen_from_host
from syncscope.tensors.torch.ranks import dimensions, parts
from syncscope.tensors.torch.results import (
    bounds,
    distinct,
    names_dim,
    of_pair,
    operand_of,
    positions,
    positions_by_dimension,
    repeated,
    scalar_slots,
    sized_by,
    subject,
)
from syncscope.tensors.torch.signatures import DTYPE_OF, LIKE, LINALG_CHECKED, OCL_FALLBACK, PAIRED, Signature

Special = Callable[[Call], Fact | None]  # None: the schema tells the result


def _dynamic(op: Op, dtype: Dtype | None = None, ndim: int | None = None) -> Special:
    """A function whose result's shape depends on data."""

    def run(call: Call) -> Fact:
        held = subject(call)
        call.emit(op, operand_of(call), held)
        return call.result(held, dtype=dtype, shape=DYNAMIC, ndim=ndim, confidence=3)

    return run


def _nonzero(call: Call) -> Fact:
    held = subject(call)
    call.emit(Op.NONZERO, operand_of(call), held)
    return positions(call, held, 3)


def _where(call: Call) -> Fact | None:
    if len(call.nodes) + len(call.node.keywords) != 1 or call.starred:
        if len(call.args) == 3:
            condition, one, other = zip(call.nodes, call.args, strict=True)
            chosen_from_host(call, condition[1], one, other)
        return None
    held = subject(call)
    call.emit(Op.WHERE, operand_of(call), held)
    return positions_by_dimension(call, held, 3)


def _unique(op: Op) -> Special:
    def run(call: Call) -> Fact:
        held = subject(call)
        call.emit(op, operand_of(call), held)
        return distinct(call, held, 3)

    return run


def _repeat_interleave(call: Call) -> Fact:
    args = call.args
    repeats = args[1] if len(args) > 1 else call.keywords.get("repeats", args[0] if len(args) == 1 else UNKNOWN)
    return repeated(call, subject(call), repeats)


def _one_hot(call: Call) -> Fact:
    held = subject(call)
    if len(call.args) < 2 and "num_classes" not in call.keywords:
        call.emit(Op.ONE_HOT, operand_of(call), held)
    return call.result(held, dtype=INT, ndim=held.ndim + 1 if held.ndim is not None else None, confidence=3)


def _reading(op: Op) -> Special:
    """A function that answers True or False: Python gets the answer."""

    def run(call: Call) -> Fact:
        held = subject(call)
        if op in (Op.EQUAL, Op.ALLCLOSE) and len(call.args) > 1 and device_of(*call.args) is HOST:
            return TRUTH
        if op is not Op.EQUAL or not _one_tensor(call.nodes):
            call.emit(op, operand_of(call), held, 1 if op is Op.EQUAL and _given_twice(call) else 3)
        call.frame.work = False
        return TRUTH

    return run


def _given_twice(call: Call) -> bool:
    """Whether it was given both, as `x1` and `x2`: most often one tensor twice, and torch says so without a wait."""
    names = [at.id for at in call.nodes if isinstance(at, ast.Name)]
    function = call.frame.function
    given = function is not None and len(names) == len(call.nodes) and all(name in function.names for name in names)
    return given and len({name.rstrip("0123456789") for name in names}) == 1


def _one_tensor(nodes: list[ast.expr]) -> bool:
    """Whether two arguments are the same name: `torch.equal` of one tensor answers without a look at its values."""
    words = [dotted(each) for each in nodes]
    return len(words) == 2 and words[0] == words[1] != ""


def _device(call: Call) -> Fact:
    at = call.first_node
    where = SOMEWHERE if at is None else DEVICE if isinstance(at, ast.IfExp) else device_meant(at, call.first)
    return Fact(OTHER, device=where, confidence=3, ref=Tag.DEVICE)


def _multinomial(call: Call) -> None:
    call.emit(Op.MULTINOMIAL, operand_of(call), subject(call, 2), 1)


def _ctc_loss(call: Call) -> None:
    args, keywords = call.args, call.keywords
    lengths = (*args[2:4], keywords.get("input_lengths", UNKNOWN), keywords.get("target_lengths", UNKNOWN))
    read = next((each for each in lengths if each.kind is TENSOR and each.device is not HOST), None)
    scores = holds_tensor(call.first)
    if read is not None:
        call.emit(Op.CTC_LOSS, call.nodes[2] if len(call.nodes) > 2 else None, read, 2)
    elif scores is not None and (len(args) < 2 or args[1].device is not HOST):
        call.emit(Op.LIBRARY_READ, operand_of(call), scores, 2)  # lengths and offsets are copied to the device


def _sparse_coo(call: Call) -> None:
    """Without a size, the largest indices are asked for."""
    if len(call.args) < 3 and "size" not in call.keywords and not call.starred:
        call.emit(Op.SPARSE, operand_of(call), subject(call, 2), 2)


def _save(call: Call) -> Fact:
    """What is written is copied to the host first."""
    held = _written(call.first)
    if held is not None:
        call.emit(Op.CPU, call.first_node, held, 3 if call.first.kind is TENSOR else 2)
    return NONE


def _written(fact: Fact, depth: int = 0) -> Fact | None:
    """A tensor in what is saved: itself, the parameters of a module, what a dict or a list holds."""
    if fact.kind is MODULE:
        return tensor(device=fact.device, confidence=2, why="the parameters of a module")
    held = holds_tensor(fact)
    if held is not None or fact.kind is not SEQUENCE or depth > 2:
        return held
    parts = (fact.ref.keys or {}).values() if isinstance(fact.ref, Items) else ()
    found = (_written(each, depth + 1) for each in (*fact.elements, *parts))
    return next((each for each in found if each is not None), None)


def _size_object(call: Call) -> Fact:
    held = holds_tensor(call.first)
    if held is not None:
        call.emit(Op.SIZE, call.first_node, held)
    return SIZE


def _checked(call: Call) -> Fact:
    for at, held in call.tensors():
        call.emit(Op.TENSOR_CHECK, at, held, 2)
        break
    return NONE


def _broadcast(call: Call) -> Fact:
    if call.args and all(a.kind is TENSOR for a in call.args):
        return sequence(*call.args)
    return items(tensor(confidence=3, why=call.node))


def _combinations(call: Call) -> Fact:
    held = subject(call)
    call.emit(Op.COMBINATIONS, operand_of(call), held)
    return call.result(held, shape=FIXED, ndim=2, confidence=3)


def _tensor_split(call: Call) -> Fact:
    held = subject(call)
    if len(call.args) > 1 and call.args[1].kind is TENSOR:
        call.emit(Op.SIZE, call.nodes[1], call.args[1])
    return items(call.result(held, confidence=3))


def _split(call: Call) -> None:
    """By a list of sizes that are tensors: each is asked."""
    sizes = call.given(1, "split_size_or_sections")
    # else its slot tells
    if sizes.kind is SEQUENCE and not sizes.elements and (held := holds_tensor(sizes)) is not None:
        call.emit(Op.SIZE, call.node_of(1, "split_size_or_sections"), held)


def _einsum(call: Call) -> Fact:
    """Of tensors one by one, or of a list of them."""
    listed = (fact.elements or (element(fact),) if fact.kind is SEQUENCE else (fact,) for fact in call.args[1:])
    operands = [each for several in listed for each in several]
    held = next((each for each in operands if each.kind is TENSOR), None)
    dtype = held.dtype if held is not None else ANY_DTYPE
    return tensor(dtype, device_of(*operands), 3, call.node, held, ndim=dimensions(call, held, 0))


def _factored(*parts: int) -> Special:
    """Functions written in Python over checked ones; `parts` are the dimensions of what they give, of a matrix."""

    def run(call: Call) -> Fact:
        held = subject(call)
        call.emit(Op.LINALG_CHECK, operand_of(call), held, 2)
        return sequence(*(call.result(held, ndim=ndim if held.ndim == 2 else None, confidence=3) for ndim in parts))

    return run


_FINFO, _IINFO = named("torch.finfo()"), named("torch.iinfo()")
_A_DTYPE = Fact(OTHER, confidence=3, ref=Tag.DTYPE)
_ON_HOST = Fact(OTHER, device=HOST, confidence=3, ref=Tag.DEVICE)
SPECIAL: dict[str, Special] = {
    "nonzero": _nonzero,
    "argwhere": _dynamic(Op.ARGWHERE, INT, 2),
    "where": _where,
    "unique": _unique(Op.UNIQUE),
    "unique_consecutive": _unique(Op.UNIQUE_CONSECUTIVE),
    "masked_select": _dynamic(Op.MASKED_SELECT, None, 1),
    "bincount": _dynamic(Op.BINCOUNT, INT, 1),
    "combinations": _combinations,
    "repeat_interleave": _repeat_interleave,
    "one_hot": _one_hot,
    "equal": _reading(Op.EQUAL),
    "allclose": _reading(Op.ALLCLOSE),
    "is_nonzero": _reading(Op.IS_NONZERO),
    **dict.fromkeys(("is_tensor", "is_floating_point", "is_complex", "is_grad_enabled"), lambda _: TRUTH),
    "device": _device,
    **dict.fromkeys(("promote_types", "result_type", "get_default_dtype"), lambda _: _A_DTYPE),
    "get_default_device": lambda _: _ON_HOST,
    "dtype": lambda _: THING,
    "finfo": lambda _: _FINFO,
    "iinfo": lambda _: _IINFO,
    "load": lambda _: UNKNOWN,
    "multinomial": _multinomial,
    "ctc_loss": _ctc_loss,
    "save": _save,
    "sparse_coo_tensor": _sparse_coo,
    "Size": _size_object,
    **dict.fromkeys(("_check_tensor_all", "_check_tensor_all_with"), _checked),
    "compile": lambda call: call.args[0] if call.args else THING,
    "broadcast_tensors": _broadcast,
    "numel": lambda _: INTEGER,
    "split": _split,
    "tensor_split": _tensor_split,
    "einsum": _einsum,
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), _factored(2, 1, 2)),
    "lobpcg": _factored(1, 2),
}


def by_schema(call: Call, signature: Signature) -> Fact:
    """A torch function over tensors: the result by its schema, dtype and dimensions by its name."""
    word, node = call.word, call.node
    first = call.args[0] if call.args else call.keywords.get("input", UNKNOWN)
    if first is STARRED:  # `torch.meshgrid(*axes)`
        first = evaluate(call.frame, call.nodes[0].value)  # type: ignore[attr-defined]
    # a loader gives a batch that is one tensor, too
    held = element(first) if first.kind is BATCH else holds_tensor(first)
    device = _device_of_result(call, first)
    seen = held or tensor(device=device, confidence=2, why=node)  # what waits, where it does
    if call.name in OCL_FALLBACK and device is not HOST:
        call.emit(Op.OCL_FALLBACK, call.first_node, seen)
    _reads(call, seen)
    shape = held.shape if held is not None else ANY_SHAPE
    if any(f.kind is TENSOR and f.shape is DYNAMIC for f in call.args):
        shape = DYNAMIC
    dtype = _dtype_of_result(call, first, held)

    def made(ndim: int | None, dtype: Dtype = dtype) -> Fact:
        return tensor(dtype, device, 3, node, held, shape, ndim)

    pair = signature.tensors
    if (signature.tensor and not pair) or (word in PAIRED and not names_dim(call, 1)):
        return made(dimensions(call, held, 1))
    if word in PAIRED or (pair and not signature.tensor):
        ndim = of_pair(call, held)
        return sequence(made(ndim), *[made(ndim, INT if word in PAIRED else dtype)] * (max(signature.width, 2) - 1))
    if signature.listed:
        return items(made(parts(call, held)))
    if signature.tensor:
        return made(None)
    return TRUTH if signature.truth else NUMBER if signature.number else UNKNOWN


def _reads(call: Call, seen: Fact) -> None:
    """Tell of what a function reads of the tensor that it takes first, or of what else it is given."""
    if call.name in LINALG_CHECKED:
        call.emit(Op.LINALG_CHECK, call.first_node, seen, 2)
    scalar_slots(call, call.name, 0)
    bounds(call, 0)
    sized_by(call)
    if call.word in INSIDE:
        read_inside(call, seen, 0)


def _device_of_result(call: Call, first: Fact) -> Device:
    if call.word in LIKE:
        return call.where_made(first.device if first.kind is TENSOR else SOMEWHERE)
    if call.word == "normal" and ("size" in call.keywords or len(call.args) > 2):
        return call.where_made(call.by_default)  # of two numbers: what has a size is made of nothing else
    if first.kind is BATCH:
        return first.device
    if call.word in _JOINING:
        each = {fact.device for fact in first.elements if fact.kind is TENSOR and fact.confidence == 3}
        if HOST in each and DEVICE not in each:
            return HOST  # they lie in one place
    device = HOST
    known = False
    for fact in (*(first if each is STARRED else each for each in call.args), *call.keywords.values()):
        inner = holds_tensor(fact)
        if inner is not None:
            known = True
            if inner.device is DEVICE:
                return DEVICE
            if inner.device is DEFAULT or (inner.device is SOMEWHERE and device is HOST):
                device = inner.device
        elif fact.kind is NOTHING_KNOWN and first.kind is not SCALAR:
            device = SOMEWHERE if device is HOST else device
            known = True
    # Of Python numbers alone a tensor on the host is made.
    return device if known or first.kind is SCALAR else SOMEWHERE


_JOINING = frozenset(("cat", "concat", "stack", "hstack", "vstack"))


def _dtype_of_result(call: Call, first: Fact, held: Fact | None) -> Dtype:
    dtype = call.dtype_given()
    if dtype is not ANY_DTYPE:
        return dtype
    word, args = call.word, call.args
    dtype = DTYPE_OF.get(word) or (held.dtype if held is not None else ANY_DTYPE)
    if word == "where" and len(args) == 3:
        return args[1].dtype if args[1].kind is TENSOR else args[2].dtype
    if word in ("sum", "cumsum", "prod") and dtype is BOOL:
        return INT
    if word in ("stack", "cat", "concat"):
        each = element(first)
        return each.dtype if each.kind is TENSOR else ANY_DTYPE
    if word in ("matmul", "einsum", "bmm", "mm", "addmm", "gather") and held is not None:
        return held.dtype
    return dtype
