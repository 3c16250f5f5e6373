"""What the result of a torch call looks like, and the Python numbers that it takes."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    DEVICE,
    DYNAMIC,
    HOST,
    INT,
    INTEGER,
    NONE,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    element,
    items,
    tensor,
)
from syncscope.tensors.frame import Frame, holds_tensor
from syncscope.tensors.torch.signatures import (
    DTYPE_NAMED,
    LOSSES,
    REDUCTIONS,
    SPREAD,
    method,
)
from syncscope.tensors.torch.signatures import function as signature_of

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


def flag(node: ast.Call, name: str) -> bool:
    """Whether a keyword is given as True."""
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)


def where_made(frame: Frame, node: ast.Call, keywords: Keywords, default: Device) -> Device:
    """The device that a `device=` argument names."""
    fact = keywords.get("device")
    if fact is None:
        return SOMEWHERE if None in keywords and default is HOST else default  # `**kwargs` may name one
    for keyword in node.keywords:
        if keyword.arg == "device":
            return device_named(keyword.value, fact, default)
    return default


def device_named(node: ast.expr, fact: Fact, default: Device = SOMEWHERE) -> Device:
    """What an expression given as a device means."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return HOST if node.value.startswith("cpu") else SOMEWHERE if node.value == "meta" else DEVICE
        return default if node.value is None else DEVICE
    if fact.ref == "torch.device":
        return fact.device
    return default if fact is NONE else SOMEWHERE


def dtype_given(keywords: Keywords) -> Dtype:
    """The dtype that a `dtype=` argument names."""
    fact = keywords.get("dtype")
    if fact is None:
        return ANY_DTYPE
    if isinstance(fact.ref, str) and fact.ref.startswith("builtins."):
        return DTYPE_NAMED.get(fact.ref[9:], ANY_DTYPE)
    return fact.dtype


def one_less(fact: Fact | None) -> int | None:
    """One dimension less, where the number is known."""
    return fact.ndim - 1 if fact is not None and fact.ndim else None


def names_dim(word: str, node: ast.Call, args: list[Fact], keywords: Keywords, at: int) -> bool:
    """Whether a reduction names a dimension; `max(a, b)` of two tensors is not one."""
    if "dim" in keywords or "axis" in keywords:
        return keywords.get("dim") is not NONE
    if word in ("sort", "topk", "kthvalue", "cummax", "cummin"):
        return True
    return len(args) > at and args[at].kind is not TENSOR and args[at] is not NONE


def dimensions(
    word: str, held: Fact | None, node: ast.Call, args: list[Fact], keywords: Keywords, at: int
) -> int | None:
    """The number of dimensions of a result; `at` is the position after the tensor itself."""
    ndim = held.ndim if held is not None else None
    if word in LOSSES:
        return None if "reduction" in keywords else 0
    if word in REDUCTIONS:
        if len(args) > at and args[at].kind is TENSOR:
            return ndim if word in ("max", "min") else 0 if word in ("dot", "dist") else None
        if (
            "dim" not in keywords
            and "axis" not in keywords
            and (len(args) <= at or (word in ("norm", "std", "var") and args[at] is not INTEGER))
        ):
            return 0
        if (len(args) > at and args[at].kind is SEQUENCE) or keywords.get("dim", UNKNOWN).kind is SEQUENCE:
            return None
        return ndim if flag(node, "keepdim") else None if ndim is None else ndim - 1
    if word in ("unsqueeze", "stack"):
        if word == "stack":
            each = element(args[0]).ndim if args else None
            return None if each is None else each + 1
        return None if ndim is None else ndim + 1
    if word in ("view", "reshape"):
        shapes = args[at:]
        if any(isinstance(a, ast.Starred) for a in node.args):
            return None
        if len(shapes) == 1:
            if shapes[0].kind is SEQUENCE:
                return len(shapes[0].elements) or None
            return 1 if shapes[0].kind is SCALAR else None
        return len(shapes) if shapes and all(s.kind is not SEQUENCE for s in shapes) else None
    if word in ("flatten", "ravel"):
        return 1 if len(args) <= at and not keywords else None
    if word in ("nonzero", "argwhere"):
        return 2
    if word in (
        "squeeze",
        "expand",
        "repeat",
        "index_select",
        "tile",
        "matmul",
        "einsum",
        "mm",
        "bmm",
        "where",
        "movedim",
        "broadcast_to",
        "unflatten",
    ):
        return {"mm": 2, "bmm": 3}.get(word)
    if word in ("bincount", "masked_select", "diff_"):
        return 1
    if word in ("cat", "concat"):
        return element(args[0]).ndim if args else None
    if word in ("one_hot", "gather") and word == "one_hot":
        return None if ndim is None else ndim + 1
    if word in ("diagonal", "select"):
        return None if ndim is None else ndim - 1
    if word in (
        "diag",
        "cdist",
        "outer",
        "interpolate",
        "pad",
        "unfold",
        "linear",
        "embedding",
        "multi_dot",
        "tensordot",
        "kron",
    ):
        return 2 if word == "outer" else None
    return ndim


def scalar_slots(frame: Frame, node: ast.Call, dotted: str, args: list[Fact], keywords: Keywords, shift: int) -> bool:
    """Tensors where a Python number is taken; whether one of them makes a size."""
    signature = signature_of(dotted) if shift == 0 else method(dotted)
    if signature is None or not signature.slots:
        return False
    sized = False
    for position, fact in enumerate(args):
        kind = fact.kind
        if kind is SCALAR or kind is NOTHING_KNOWN or kind is OTHER:
            continue
        place = position + shift
        name = signature.places.get(place)
        if name is None and place >= signature.spread and dotted.rpartition(".")[2] in SPREAD:
            name = signature.places.get(signature.spread)
        if name is None:
            continue
        sized |= _slot(frame, node, node.args[position], fact, signature.slots[name])
    for keyword in node.keywords:
        if keyword.arg in signature.slots:
            sized |= _slot(frame, node, keyword.value, keywords[keyword.arg], signature.slots[keyword.arg])
    return sized


def _slot(frame: Frame, node: ast.Call, at: ast.expr, fact: Fact, size: bool) -> bool:
    if fact.kind is TENSOR:
        if fact.ndim is None or fact.ndim == 0 or not size:
            frame.emit(
                "size" if size else "scalar_slot",
                node,
                at,
                fact,
                fact.confidence if fact.ndim == 0 else min(fact.confidence, 2),
            )
        return size
    if fact.kind is SEQUENCE and size:
        for each in fact.elements:
            if each.kind is TENSOR:
                frame.emit("size", node, at, each)
                return True
    return False


def operand_of(node: ast.Call) -> ast.expr | None:
    """The expression that a torch function works on."""
    return (
        node.args[0]
        if node.args
        else next((k.value for k in node.keywords if k.arg in ("input", "self", "condition")), None)
    )


def subject(args: list[Fact], keywords: Keywords, confidence: int, node: ast.AST) -> Fact:
    """The tensor that a torch function works on: whatever it is given must be one."""
    first = args[0] if args else keywords.get("input", keywords.get("condition", UNKNOWN))
    held = holds_tensor(first)
    if held is not None:
        return (
            held if held.confidence >= confidence else held.but(confidence=confidence)
        )  # torch takes nothing else here
    if first.kind is ARRAY or first.kind is SCALAR:
        return Fact(first.kind, device=HOST, confidence=3)
    return tensor(confidence=confidence, why=node)


def nonzero_result(node: ast.Call, held: Fact, confidence: int) -> Fact:
    """Positions: one tensor, or one per dimension with `as_tuple=True`."""
    if flag(node, "as_tuple"):
        each = tensor(INT, held.device, confidence, node, held, DYNAMIC, 1)
        return Fact(SEQUENCE, confidence=3, elements=(each,) * held.ndim) if held.ndim else items(each)
    return tensor(INT, held.device, confidence, node, held, DYNAMIC, 2)


def unique_result(node: ast.Call, held: Fact, confidence: int) -> Fact:
    """Values, with the inverse and the counts where they are asked for."""
    values = tensor(
        held.dtype,
        held.device,
        confidence,
        node,
        held,
        DYNAMIC,
        None if any(k.arg == "dim" for k in node.keywords) else 1,
    )
    found = [values]
    if flag(node, "return_inverse"):
        whole = held.ndim if values.ndim == 1 else 1  # as long as the dimension that is named
        found.append(tensor(INT, held.device, confidence, node, held, held.shape, whole))
    if flag(node, "return_counts"):
        found.append(tensor(INT, held.device, confidence, node, held, DYNAMIC, 1))
    return Fact(SEQUENCE, confidence=3, elements=tuple(found)) if len(found) > 1 else values


def repeated(frame: Frame, node: ast.Call, held: Fact, repeats: Fact, keywords: Keywords) -> Fact:
    """repeat_interleave: a tensor of repeats makes the length depend on data, unless output_size is given."""
    if repeats.kind is TENSOR and keywords.get("output_size", NONE) is NONE:
        frame.emit("repeat_interleave", node, operand_of(node), repeats)
        return tensor(held.dtype, held.device, max(held.confidence, 2), node, held, DYNAMIC, held.ndim)
    return tensor(
        held.dtype,
        held.device,
        max(held.confidence, 2),
        node,
        held,
        held.shape,
        held.ndim if "dim" in keywords else None,
    )
