"""Tensors that are made: on the host unless a device is given."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions, devices
from syncscope.project.syntax import dotted, last_word
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    DEVICE,
    DYNAMIC,
    FIXED,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    NONE,
    NOTHING_KNOWN,
    OTHER,
    SCALAR,
    SEQUENCE,
    SIZE,
    SOMEWHERE,
    TENSOR,
    TYPES_ON_DEVICE,
    Either,
    Listed,
    Tag,
    holds_tensor,
    tensor,
)
from syncscope.tensors.joins import element
from syncscope.tensors.torch.results import scalar_slots
from syncscope.tensors.torch.signatures import DTYPE_NAMED, DTYPE_OF

_FROM_HOST = (SCALAR, SEQUENCE, ARRAY, NOTHING_KNOWN, OTHER)
_NO_TENSORS = (Tag.NO_TENSOR, Tag.OF_ENVIRONMENT)
_OF_FLOATS = ("zeros", "ones", "empty", "eye")
_SIZED = ("zeros", "ones", "empty", "rand", "randn")  # their sizes may be given one by one
_OTHER_KINDS = frozenset("mlu xpu hpu npu mps sdaa musa xla".split())


def factory(call: Call) -> Fact:
    """A tensor that is made: of values, or of a size."""
    if call.word in ("tensor", "as_tensor", "asarray"):
        return _of_values(call)
    word, args, first = call.word, call.args, call.first
    if word in ("from_numpy", "frombuffer", "from_file"):
        known = first if first.kind is ARRAY else UNKNOWN
        return tensor(known.dtype, HOST, 3, call.node, ndim=known.ndim)
    device = call.where_made(call.by_default)
    if call.name.startswith(TYPES_ON_DEVICE):
        device = DEVICE
        _filled_with(call)
    elif word.endswith("Tensor") and args and "device" not in call.keywords:
        device = HOST  # whatever it is given: of a tensor of the device it makes none
        if word == "Tensor" and call.by_default_type is not HOST:
            device = SOMEWHERE
            _filled_with(call)
    sized = scalar_slots(call, f"torch.{word}", 0)
    if word == "arange" and len(args) > 1 and args[1].kind is TENSOR:  # where it ends: alone it comes first
        call.emit(Op.SIZE, call.nodes[1], args[1])
        sized = True
    if word in ("linspace", "logspace"):  # as a tensor an end is read: its schema tells of tensors and numbers
        for position, name in enumerate(("start", "end")):
            fact = call.given(position, name)
            if fact.kind is TENSOR:
                call.emit(Op.SCALAR_SLOT, call.node_of(position, name), fact)
    made = tensor(_dtype(call), device, 3, call.node, None, DYNAMIC if sized else ANY_SHAPE, _ndim(call))
    made.ref = Tag.EMPTY if _without_elements(call) else None
    return made


def _without_elements(call: Call) -> bool:
    """Whether a size that is written out has a 0 in it, or there is none: `torch.zeros(0, 3)`, `torch.Tensor()`."""
    word, nodes = call.word, list(call.nodes)
    if call.starred:
        return False
    if word.endswith("Tensor"):
        return not call.node.keywords and (not nodes or _empty(nodes[0]) or any(map(_zero, nodes)))
    if word in ("arange", "eye", "randperm"):
        return len(nodes) == 1 and _zero(nodes[0])
    size = next((k.value for k in call.node.keywords if k.arg == "size"), None)
    if size is None and word in (*_SIZED, "full"):
        size = nodes[0] if nodes else None
        if word != "full" and any(map(_zero, nodes)):
            return True
    return isinstance(size, (ast.Tuple, ast.List)) and any(map(_zero, size.elts))


def _zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and isinstance(node.value, int)


def _filled_with(call: Call) -> None:
    """`torch.cuda.FloatTensor(values)`: values are copied to the device; numbers and a torch.Size are sizes."""
    values = call.first
    if len(call.args) != 1 or call.starred or values is SIZE or _empty(call.first_node):
        return
    confidence = 3 if values.kind in (SEQUENCE, ARRAY) else 1 if values.kind is NOTHING_KNOWN else 0
    if confidence:
        call.emit(Op.TENSOR_LITERAL, call.first_node, tensor(device=DEVICE, confidence=confidence, why=call.node))


def _of_values(call: Call) -> Fact:
    """`torch.tensor(values)`, `torch.as_tensor(values)`, `torch.asarray(values)`."""
    word, first = call.word, call.first
    held = holds_tensor(first)
    named = call.device_given is not None or call.by_default is not HOST
    device = call.where_made(call.by_default)
    guessed = first.kind is TENSOR and first.confidence == 1
    if not named and first.kind is TENSOR and (first.confidence == 3 or word != "tensor"):
        device = first.device  # what `torch.tensor` is given and may be a number is one: of a tensor it warns
    elif not named and word != "tensor" and first.kind is NOTHING_KNOWN and first.ref not in _NO_TENSORS:
        device = SOMEWHERE
    if first.kind is SEQUENCE and held is not None:
        call.emit(Op.ITEM, call.first_node, held, 2)
    elif named and device is not HOST:
        _copied_from_host(call, device)
    dtype = call.dtype_given()
    if dtype is ANY_DTYPE and not _dtype_is_given(call):
        dtype = first.dtype if first.kind in (TENSOR, SCALAR, ARRAY) else element(first).dtype
    shape = FIXED if first.kind in (SCALAR, SEQUENCE) else ANY_SHAPE
    sure = 1 if guessed and not named and device is SOMEWHERE else 3  # of a number it would be made on the host
    made = tensor(dtype, device, sure, call.node, held, shape, _ndim_of_values(call, dtype))
    made.ref = Tag.EMPTY if _empty(call.first_node) else None
    return made


def _copied_from_host(call: Call, device: Device) -> None:
    """Tell of values that are copied to where they are made, of which it may be known that there are some on the host."""
    word, first = call.word, call.first
    sends = call.device_given is None  # of what is a tensor it would make nothing, and send it nowhere
    function = call.frame.function
    # tensors, where a network computes, unless it is announced that they may be arrays
    given = function is not None and function.name in conventions.FORWARD and not _may_be_array(first)
    if first.kind is TENSOR and not sends and word != "tensor":
        given = given or _stays_where_it_is(call)
        taken = first.device is HOST or (first.device is SOMEWHERE and not (given or _is_computed(first)))
    else:
        taken = first.kind is TENSOR and first.confidence < 3
    if not (first.kind in _FROM_HOST or taken) or _empty(call.first_node) or _of_another_kind(call):
        return
    of_host = (
        first.kind in (SCALAR, SEQUENCE)
        or (first.kind is ARRAY and word == "tensor")
        or _written(call.first_node)
        or (first.kind is NOTHING_KNOWN and is_setting(call.first_node))
    )
    # Who has a tensor of the device makes none of it: nearly all that is written so is an array or a number.
    asked = not given or word == "tensor" or sends or first.kind is ARRAY or first.ref in _NO_TENSORS
    confidence = min(3 if of_host else 2 if asked else 1, _there(call, device))
    call.emit(Op.TENSOR_LITERAL, call.first_node, tensor(device=device, confidence=confidence, why=call.node))


def _may_be_array(fact: Fact) -> bool:
    """Whether an array is among the types that a value is announced with, beside a tensor."""
    return isinstance(fact.ref, Either) and any(each.kind is ARRAY for each in fact.ref.facts)


def _stays_where_it_is(call: Call) -> bool:
    """Whether a tensor is made where it lies: `torch.as_tensor(x, dtype, device=x.device)` converts at most."""
    place = next((k.value for k in call.node.keywords if k.arg == "device"), None)
    said = dotted(place.value) if isinstance(place, ast.Attribute) and place.attr == "device" else ""
    return said != "" and said == dotted(call.first_node)


def _is_computed(fact: Fact) -> bool:
    """Whether a tensor is what a call or an operation has given, and no name that is taken for one."""
    return isinstance(fact.provenance, (ast.Call, ast.BinOp, ast.UnaryOp))


def _ndim_of_values(call: Call, dtype: Dtype) -> int | None:
    """How many dimensions values have: a number none, a list of numbers one."""
    first, node = call.first, call.first_node
    row = first.kind is SEQUENCE and first.elements and all(e.kind is SCALAR for e in first.elements)
    if row or first.ref is Tag.NUMBERS or (isinstance(first.ref, Listed) and element(first).kind is SCALAR):
        return 1
    if first.kind is SCALAR:
        return 0
    if first.kind is TENSOR:
        return first.ndim
    if first.kind is SEQUENCE:
        return _depth(node) if isinstance(node, ast.List) else None
    return 1 if first.kind is NOTHING_KNOWN and dtype is INT and _is_part_of_list(node) else None


def _is_part_of_list(node: ast.expr | None) -> bool:
    """Whether a list is cut, `heads[:-1]`: of whole numbers it is one of positions, most often, and no number."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _depth(node: ast.expr) -> int | None:
    """How deep numbers lie in a list that is written out: `[[1, 2], [3, 4]]` is a matrix."""
    if isinstance(node, ast.List):
        inner = _depth(node.elts[0]) if node.elts else None
        return None if inner is None else inner + 1
    return 0 if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None


def _of_another_kind(call: Call) -> bool:
    """Whether a device is written out that is no GPU of CUDA or ROCm: such code is for machines that have one of its kind."""
    place = next((k.value for k in call.node.keywords if k.arg == "device"), None)
    if isinstance(place, ast.Call) and last_word(place.func) == "device":
        place = next(iter(place.args), None)
    return (
        isinstance(place, ast.Constant)
        and isinstance(place.value, str)
        and place.value.partition(":")[0] in _OTHER_KINDS
    )


def _there(call: Call, device: Device) -> int:
    """How sure it is that a device which an argument names is not the host: modules are built and initialised on the host."""
    if device is DEVICE:
        return 3
    place = call.device_given
    if place is not None and place.ref is Tag.DEVICE:
        return 2
    function = call.frame.function
    return 1 if function is not None and conventions.initialises(function.name) else 2


def _written(node: ast.expr | None) -> bool:
    """Whether values are a list that is written out, or called one."""
    return isinstance(node, (ast.List, ast.ListComp)) or last_word(node).endswith("list")


def is_setting(node: ast.expr | None) -> bool:
    """Whether a value is read from a configuration, and perhaps computed with: `self.config.max_length - 1`."""
    if isinstance(node, ast.BinOp):
        return all(isinstance(each, ast.Constant) or is_setting(each) for each in (node.left, node.right))
    return isinstance(node, ast.Attribute) and not devices.SETTINGS.isdisjoint(dotted(node.value).split("."))


def _empty(node: ast.expr | None) -> bool:
    """Whether there are no values: nothing is copied."""
    return isinstance(node, (ast.List, ast.Tuple)) and not node.elts


def _dtype_is_given(call: Call) -> bool:
    """Whether a dtype is named, be it one that is not known, or uint8, of which masks and numbers are."""
    given = call.keywords.get("dtype")
    return given is not None and given is not NONE


def _dtype(call: Call) -> Dtype:
    word, args = call.word, call.args
    dtype = call.dtype_given()
    if dtype is ANY_DTYPE and _dtype_is_given(call):
        return dtype
    if dtype is ANY_DTYPE:
        dtype = DTYPE_OF.get(word, DTYPE_NAMED.get(word, FLOAT if word in _OF_FLOATS else ANY_DTYPE))
    if dtype is ANY_DTYPE and word == "full" and len(args) > 1:
        return args[1].dtype
    if dtype is ANY_DTYPE and word == "arange":
        return FLOAT if any(a.kind is SCALAR and a.dtype is FLOAT for a in args) else INT
    return dtype


def _sizes_are_numbers(call: Call) -> None:
    """Of several sizes each is a number: so is a name of which nothing else is known, from here on."""
    if len(call.args) > 1:
        for node, fact in zip(call.nodes, call.args, strict=True):
            if fact.kind is NOTHING_KNOWN and isinstance(node, ast.Name):
                call.frame.env[node.id] = INTEGER


def _ndim(call: Call) -> int | None:
    word, args, first = call.word, call.args, call.first
    if word in ("arange", "linspace", "randperm", "logspace", "range"):
        return 1
    if word in ("eye", "tril_indices", "triu_indices"):
        return 2
    if word.endswith("Tensor") and args and not call.starred and all(each is INTEGER for each in args):
        return len(args)  # sizes, one by one
    size = call.keywords.get("size") or next((each for each in args if each.kind is SEQUENCE), None)
    if size is not None:
        return len(size.elements) or None
    if args and word in _SIZED and not call.starred:
        _sizes_are_numbers(call)
        known = first.kind is SCALAR or (first.kind is NOTHING_KNOWN and len(args) > 1)
        return len(args) if known else None
    return None
