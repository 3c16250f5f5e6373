"""Functions of torch that wait, or whose result no schema tells."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Dtype, Fact
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    DEVICE,
    DYNAMIC,
    FIXED,
    HOST,
    INT,
    INTEGER,
    NONE,
    OTHER,
    SEQUENCE,
    SIZE,
    SOMEWHERE,
    TENSOR,
    THING,
    TRUTH,
    device_of,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, holds_tensor
from syncscope.tensors.torch.host_values import chosen_from_host
from syncscope.tensors.torch.results import (
    device_named,
    nonzero_result,
    operand_of,
    repeated,
    subject,
    unique_result,
)

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


Special = Callable[[Frame, ast.Call, list[Fact], Keywords], Fact | None]


def _dynamic(op: str, dtype: Dtype | None = None, ndim: int | None = None) -> Special:
    """A function whose result's shape depends on data."""

    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = subject(args, keywords, 3, node)
        frame.emit(op, node, operand_of(node), held, 3)
        return tensor(dtype if dtype is not None else held.dtype, held.device, 3, node, held, DYNAMIC, ndim)

    return run


def _nonzero(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    held = subject(args, keywords, 3, node)
    frame.emit("nonzero", node, operand_of(node), held, 3)
    return nonzero_result(node, held, 3)


def _where(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    if len(node.args) + len(node.keywords) != 1 or any(isinstance(a, ast.Starred) for a in node.args):
        if len(args) == 3:
            chosen_from_host(frame, node, args[0], [*zip(node.args[1:], args[1:], strict=True)])
        return None
    held = subject(args, keywords, 3, node)
    frame.emit("where", node, operand_of(node), held, 3)
    each = tensor(INT, held.device, 3, node, held, DYNAMIC, 1)
    return Fact(SEQUENCE, confidence=3, elements=(each,) * held.ndim) if held.ndim else items(each)


def _unique(op: str) -> Special:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = subject(args, keywords, 3, node)
        frame.emit(op, node, operand_of(node), held, 3)
        return unique_result(node, held, 3)

    return run


def _repeat_interleave(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    repeats = args[1] if len(args) > 1 else keywords.get("repeats", args[0] if len(args) == 1 else UNKNOWN)
    return repeated(frame, node, subject(args, keywords, 3, node), repeats, keywords)


def _one_hot(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = subject(args, keywords, 3, node)
    if len(args) < 2 and "num_classes" not in keywords:
        frame.emit("one_hot", node, operand_of(node), held, 3)
    return tensor(INT, held.device, 3, node, held, held.shape, held.ndim + 1 if held.ndim is not None else None)


def _reading(op: str, result: Fact = TRUTH) -> Special:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
        held = subject(args, keywords, 3, node)
        if op in ("equal", "allclose") and len(args) > 1 and device_of(*args) is HOST:
            return result
        frame.emit(op, node, operand_of(node), held, 3)
        frame.work = False
        return result

    return run


def _yes(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return TRUTH


def _device(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    where = device_named(node.args[0], args[0]) if node.args else SOMEWHERE
    if node.args and isinstance(node.args[0], ast.IfExp):
        where = DEVICE
    return Fact(OTHER, ANY_DTYPE, where, confidence=3, ref="torch.device")


def _thing(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return THING


def _multinomial(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = subject(args, keywords, 2, node)
    frame.emit("multinomial", node, operand_of(node), held, 1)
    return None


def _ctc(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    lengths = [
        f
        for f in (*args[2:4], keywords.get("input_lengths", UNKNOWN), keywords.get("target_lengths", UNKNOWN))
        if f.kind is TENSOR
    ]
    read = next((f for f in lengths if f.device is not HOST), None)
    scores = holds_tensor(args[0]) if args else None
    if read is not None:
        frame.emit("ctc_loss", node, node.args[2] if len(node.args) > 2 else None, read, 2)
    elif scores is not None and (len(args) < 2 or args[1].device is not HOST):
        frame.emit("library_read", node, operand_of(node), scores, 2)  # lengths and offsets are copied to the device
    return None


def _sparse_coo(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    """Without a size, the largest indices are asked for."""
    if len(args) < 3 and "size" not in keywords and not any(isinstance(a, ast.Starred) for a in node.args):
        frame.emit("sparse", node, operand_of(node), subject(args, keywords, 2, node), 2)
    return None


def _save(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    if args and args[0].kind is TENSOR:
        frame.emit("cpu", node, node.args[0], args[0])
    return NONE


def _size_object(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = holds_tensor(args[0]) if args else None
    if held is not None:
        frame.emit("size", node, node.args[0], held)
    return SIZE


def _checked(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = next((a for a in args if a.kind is TENSOR), None)
    if held is not None:
        frame.emit("tensor_check", node, node.args[args.index(held)], held, 2)
    return NONE


def _compiled(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return args[0] if args else THING


def _broadcast(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    return (
        sequence(tuple(args)) if args and all(a.kind is TENSOR for a in args) else items(tensor(confidence=3, why=node))
    )


def _combinations(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = subject(args, keywords, 3, node)
    frame.emit("combinations", node, operand_of(node), held)
    return tensor(held.dtype, held.device, 3, node, held, FIXED, 2)


def _tensor_split(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact | None:
    held = subject(args, keywords, 3, node)
    if len(args) > 1 and args[1].kind is TENSOR:
        frame.emit("size", node, node.args[1], args[1])
    return items(Fact(TENSOR, held.dtype, held.device, held.shape, held.ndim, 3, node, source=held))


_A_DTYPE = Fact(OTHER, ANY_DTYPE, confidence=3, ref="torch.dtype")
TORCH: dict[str, Special] = {
    "nonzero": _nonzero,
    "argwhere": _dynamic("argwhere", INT, 2),
    "where": _where,
    "unique": _unique("unique"),
    "unique_consecutive": _unique("unique_consecutive"),
    "masked_select": _dynamic("masked_select", None, 1),
    "bincount": _dynamic("bincount", INT, 1),
    "combinations": _combinations,
    "repeat_interleave": _repeat_interleave,
    "one_hot": _one_hot,
    "equal": _reading("equal"),
    "allclose": _reading("allclose"),
    "is_nonzero": _reading("is_nonzero"),
    "is_tensor": _yes,
    "is_floating_point": _yes,
    "is_complex": _yes,
    "is_grad_enabled": _yes,
    "device": _device,
    "dtype": _thing,
    **dict.fromkeys(("promote_types", "result_type", "get_default_dtype"), lambda *_: _A_DTYPE),
    "get_default_device": lambda *_: Fact(OTHER, ANY_DTYPE, HOST, confidence=3, ref="torch.device"),
    "finfo": _thing,
    "iinfo": _thing,
    "load": lambda *_: UNKNOWN,
    "multinomial": _multinomial,
    "ctc_loss": _ctc,
    "save": _save,
    "sparse_coo_tensor": _sparse_coo,
    "Size": _size_object,
    "_check_tensor_all": _checked,
    "_check_tensor_all_with": _checked,
    "compile": _compiled,
    "broadcast_tensors": _broadcast,
    "numel": lambda *_: INTEGER,
    "tensor_split": _tensor_split,
    "einsum": lambda frame, node, args, keywords: Fact(
        TENSOR,
        next((a.dtype for a in args if a.kind is TENSOR), ANY_DTYPE),
        device_of(*args[1:]),
        ANY_SHAPE,
        None,
        3,
        node,
        source=next((a for a in args if a.kind is TENSOR), None),
    ),
}
