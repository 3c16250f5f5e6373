"""Tensors that are made: on the host unless a device is given."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
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
    NUMBERS,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    element,
    tensor,
)
from syncscope.tensors.frame import Frame, holds_tensor
from syncscope.tensors.torch.results import (
    dtype_given,
    scalar_slots,
    where_made,
)
from syncscope.tensors.torch.signatures import (
    DTYPE_NAMED,
    DTYPE_OF,
)

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


_FROM_HOST = (SCALAR, SEQUENCE, ARRAY, NOTHING_KNOWN, OTHER)


def factory(frame: Frame, node: ast.Call, word: str, args: list[Fact], keywords: Keywords) -> Fact:
    """A tensor that is made: on the host unless a device is given."""
    first = args[0] if args else UNKNOWN
    given = "device" in keywords
    device = where_made(frame, node, keywords, HOST)
    if word in ("tensor", "as_tensor", "asarray"):
        held = holds_tensor(first)
        if not given and first.kind is TENSOR and first.confidence >= 2:
            device = first.device
        elif not given and word != "tensor" and first.kind is NOTHING_KNOWN:
            device = SOMEWHERE
        dtype = dtype_given(keywords)
        if dtype is ANY_DTYPE:
            dtype = first.dtype if first.kind in (TENSOR, SCALAR, ARRAY) else element(first).dtype
        if first.kind is SEQUENCE and held is not None and first.kind is not TENSOR:
            frame.emit("item", node, node.args[0], held, 2)
        elif given and device is not HOST and word != "asarray" and first.kind in _FROM_HOST:
            confidence = 3 if first.kind is SCALAR or (first.kind is SEQUENCE and word == "tensor") else 1
            confidence = min(
                confidence, 3 if device is DEVICE else 2 if keywords["device"].ref == "torch.device" else 1
            )
            made = tensor(device=device, confidence=confidence, why=node)
            frame.emit("tensor_literal", node, node.args[0] if node.args else None, made)
        ndim: int | None = 0 if first.kind is SCALAR else first.ndim if first.kind is TENSOR else None
        if (
            first.kind is SEQUENCE and first.elements and all(e.kind is SCALAR for e in first.elements)
        ) or first is NUMBERS:
            ndim = 1
        return tensor(dtype, device, 3, node, held, FIXED if first.kind in (SCALAR, SEQUENCE) else ANY_SHAPE, ndim)
    dtype = dtype_given(keywords)
    if dtype is ANY_DTYPE:
        dtype = DTYPE_OF.get(
            word, DTYPE_NAMED.get(word, FLOAT if word in ("zeros", "ones", "empty", "eye") else ANY_DTYPE)
        )
    if word == "full":
        dtype = dtype if dtype is not ANY_DTYPE else (args[1].dtype if len(args) > 1 else ANY_DTYPE)
    if word == "arange" and dtype is ANY_DTYPE:
        dtype = FLOAT if any(a.kind is SCALAR and a.dtype is FLOAT for a in args) else INT
    if word in ("from_numpy", "frombuffer"):
        return tensor(
            first.dtype if first.kind is ARRAY else ANY_DTYPE,
            HOST,
            3,
            node,
            ndim=first.ndim if first.kind is ARRAY else None,
        )
    if word.endswith("Tensor") and first.kind is TENSOR:
        device = first.device
    elif word.endswith("Tensor") and args and not given:
        device = HOST
    sized = scalar_slots(frame, node, f"torch.{word}", args, keywords, 0)
    if word in ("linspace", "logspace"):  # as a tensor an end is read: its schema tells of tensors and numbers
        ends = [*zip(node.args[:2], args[:2], strict=True)]
        ends += [(k.value, keywords[k.arg]) for k in node.keywords if k.arg in ("start", "end")]
        for at, fact in ends:
            if fact.kind is TENSOR:
                frame.emit("scalar_slot", node, at, fact)
    ndim = None
    if word in ("arange", "linspace", "randperm", "logspace", "range"):
        ndim = 1
    elif word == "eye":
        ndim = 2
    elif args and first.kind is SEQUENCE:
        ndim = len(first.elements) or None
    elif (
        args
        and word in ("zeros", "ones", "empty", "rand", "randn")
        and not any(isinstance(a, ast.Starred) for a in node.args)
    ):
        ndim = len(args) if first.kind in (SCALAR, NOTHING_KNOWN) and (len(args) > 1 or first.kind is SCALAR) else None
    return tensor(dtype, device, 3, node, None, DYNAMIC if sized else ANY_SHAPE, ndim)
