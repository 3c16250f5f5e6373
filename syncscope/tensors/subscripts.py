"""What a subscript reads: of a tensor what `torch/indexing.py` says, of Python's lists, dicts and batches an element."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import devices
from syncscope.project.syntax import text_of
from syncscope.tensors.attributes import elements
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    DEVICE,
    HOST,
    MODULE,
    NO_TENSOR,
    OF_PARAMETERS,
    OTHER,
    SEQUENCE,
    TENSOR,
    Items,
    items,
    parameter,
    sequence,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.joins import any_value, element
from syncscope.tensors.torch.indexing import asked_at, index


def subscript(frame: Frame, node: ast.Subscript) -> Fact:
    """`base[index]`, read."""
    base = evaluate(frame, node.value)
    if base.kind is OTHER:
        base = elements(base, frame)
    kind = base.kind
    if kind is SEQUENCE or kind is BATCH:
        found = item(frame, node, base)
        return _of_batch(frame, node) or found if found is UNKNOWN else found
    if node.slice.__class__ in (ast.Constant, ast.IfExp) and (part := _of_batch(frame, node)) is not None:
        return part
    if kind is TENSOR and base.source is not None and base.source.kind is BATCH and text_of(node.slice) is not None:
        return element(base.source)  # a batch of dicts: `inputs["pose"]` of `for inputs, targets in loader`
    if kind is OTHER and isinstance(base.ref, str) and base.ref.startswith(("typing.", "builtins.", "collections")):
        return UNKNOWN if base.ref.endswith("()") else base
    if kind is MODULE and base.ref in OF_PARAMETERS:
        return parameter(base, node)
    if base is NO_TENSOR and node.slice.__class__ in (ast.Compare, ast.Slice):
        evaluate(frame, node.slice)
        return base  # a part of an array or of a list
    mask, at, result = index(frame, node, base)
    if mask is not None and kind is not ARRAY:
        confidence = min(mask.confidence, max(base.confidence, 2)) if kind is TENSOR else min(mask.confidence, 2)
        if kind is TENSOR and base.device is HOST and base.confidence == 3 and mask.device is not DEVICE:
            confidence = 1  # a mask of the device selects from no tensor of the host
        frame.emit(Op.MASK_READ, node, at, mask, min(confidence, 1) if kind is MODULE or kind is OTHER else confidence)
    return result


def _of_batch(frame: Frame, node: ast.Subscript) -> Fact | None:
    """`batch["image"]` of an argument that people call a batch: no tensor has items by name."""
    match node:
        case (
            ast.Subscript(value=ast.Name(id=name), slice=ast.IfExp(body=ast.Constant(value=str(key))))
            | ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)))
        ) if name in devices.BATCHES:
            if key != "batch_size" and frame.function is not None and name in frame.function.names:
                return element(Fact(BATCH, confidence=1, why=f"`{name}` is what people call a loader's"))
    return None


def item(frame: Frame, node: ast.Subscript, base: Fact) -> Fact:
    """One element, or a slice, of a list, tuple, dict or batch."""
    part = node.slice
    if isinstance(part, ast.Slice):
        return _slice(frame, node, part, base)
    at = _number(part)
    if at is not None:
        return element(base, at)
    if isinstance(part, ast.Constant):
        keys = base.ref.keys if isinstance(base.ref, Items) else None
        return keys.get(part.value, UNKNOWN) if keys else element(base)
    fact = evaluate(frame, part)
    if fact.kind is TENSOR:
        asked_at(frame, node, part, fact, base)
    return any_value(base)


def _slice(frame: Frame, node: ast.Subscript, part: ast.Slice, base: Fact) -> Fact:
    for bound in (part.lower, part.upper, part.step):
        if bound is not None:
            fact = evaluate(frame, bound)
            if fact.kind is TENSOR:
                frame.emit(Op.INDEX, node, bound, fact)
    if not base.elements:
        return base
    low, high = _number(part.lower), _number(part.upper)
    if part.step is None and (part.lower is None or low is not None) and (part.upper is None or high is not None):
        return sequence(*base.elements[low:high])
    return items(element(base))


def _number(node: ast.expr | None) -> int | None:
    """A number that is written out, `-1`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return None
