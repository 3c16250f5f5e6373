"""Subscripts: masks, gathers, slices, and the numbers of dimensions that they leave."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import NamedTuple

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import devices
from syncscope.project.names import ancestry
from syncscope.project.syntax import dotted, each_of, last_word, name_of, walk
from syncscope.tensors.attributes import elements
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BATCH,
    BOOL,
    COMPARED,
    DEVICE,
    DYNAMIC,
    FLOAT,
    HOST,
    INT,
    MODULE,
    NO_TENSOR,
    NONE,
    OTHER,
    PICKED,
    SCALAR,
    SEQUENCE,
    TENSOR,
    Items,
    Listed,
    Tag,
    items,
    like,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.instances import instance
from syncscope.tensors.joins import any_value, element
from syncscope.tensors.sent_later import is_sent_later
from syncscope.tensors.torch.positions import as_one_position, from_host, mask_like, named_mask

NOTHING_KNOWN = UNKNOWN.kind


class Indexed(NamedTuple):
    """What a subscript does: its mask (and where that stands), and what it gives."""

    mask: Fact | None
    at: ast.expr | None
    result: Fact


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
    if kind is OTHER and isinstance(base.ref, str) and base.ref.startswith(("typing.", "builtins.", "collections")):
        return UNKNOWN if base.ref.endswith("()") else base
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
    if isinstance(part, ast.Constant):
        value = part.value
        if isinstance(value, int):
            return element(base, value)
        ref = base.ref
        if isinstance(ref, Items) and ref.keys:
            return ref.keys.get(value, UNKNOWN)
        return element(base)
    if isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant) and isinstance(part.operand.value, int):
        return element(base, -part.operand.value)
    if isinstance(part, ast.Slice):
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
    fact = evaluate(frame, part)
    if fact.kind is TENSOR:
        _of_list(frame, node, part, fact, base)
    return any_value(base)


def _of_list(frame: Frame, node: ast.expr, part: ast.expr, fact: Fact, base: Fact) -> None:
    """A list is asked for what stands at a tensor, which Python makes a number of; a dict only looks it up."""
    if base.kind is SEQUENCE and not isinstance(getattr(base.ref, "keys", None), dict):
        frame.emit(Op.INDEX, node, part, fact)


def _number(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return None


def index(frame: Frame, node: ast.Subscript, base: Fact, adds: bool = False) -> Indexed:
    """How a tensor is indexed; waits of the index itself (bounds, numbers, lists) are emitted, a mask is only returned.

    `adds`: what stands there is added to, `x[i] += 1`.
    """
    parts = each_of(node.slice)
    mask: Fact | None = None
    at: ast.expr | None = None
    ndim = base.ndim
    dynamic = False
    single = False  # one element is taken along some dimension
    of_host = False  # a part of the index surely lives there
    bounded = False  # a bound is read; the next is told where it stands itself
    istensor = base.kind is TENSOR
    for part in parts:
        kind = part.__class__
        change: int | None = None  # of the number of dimensions; None: not known
        if kind is ast.Slice:
            for bound in (part.lower, part.upper, part.step):  # type: ignore[attr-defined]  # checked by class
                if bound is not None and bound.__class__ is not ast.Constant:
                    fact = evaluate(frame, bound)
                    if fact.kind is TENSOR:
                        if fact.confidence == 1 and len(parts) > 1 and frame.alone and _is_length(bound):
                            fact = fact.but(confidence=2)
                        frame.emit(Op.SIZE, bound if bounded else node, bound, fact)
                        bounded = True
            continue
        if kind is ast.Constant:
            value = part.value  # type: ignore[attr-defined]  # checked by class
            if value is ...:
                continue
            if value.__class__ is str:
                return Indexed(
                    None, None, base if base.kind is ARRAY else UNKNOWN
                )  # no tensor, whatever it was taken for
            if value is None:
                change = 1
            elif value.__class__ is int:
                change = -1
                single = True
            ndim = None if ndim is None or change is None else ndim + change
            continue
        fact = evaluate(frame, part)
        if fact.kind is TENSOR:
            _of_list(frame, node, part, fact, base)
            if istensor and fact.device is HOST and base.device is not HOST and fact.ndim != 0:
                # Two tensors of one program most often live in one place: this one makes the other doubtful.
                several = fact.ndim or _is_sliced(part)
                known = 3 if base.device is DEVICE and several else 2 if fact.ref is Tag.MATCHED else 1
                met = in_a_module(frame) or _knows_device(frame) or _meets_another(frame, parts, part)
                met = met or _asks_where(frame)
                known = max(known, 2) if several and fact.confidence == 3 and met else known
                if not is_sent_later(frame, node.value):
                    frame.emit(Op.INDEX_HOST, node, part, base, known)
                of_host = True
            elif istensor and fact.ref is Tag.PERHAPS_OF_HOST and not of_host and base.device is not HOST:
                known = 2 if base.device is DEVICE or in_a_module(frame) else 1
                frame.emit(Op.INDEX_HOST, node, part, base, known if fact.ndim != 0 and fact.dtype is not BOOL else 0)
            elif base.kind is NOTHING_KNOWN and not is_sent_later(frame, node.value):
                from_host(frame, node, part, fact)
            named = 3 if fact.dtype is BOOL else named_mask(part, fact) if fact.dtype is ANY_DTYPE else 0
            if named == 2 and frame.either and dotted(part) in frame.either:
                named = 1
            if fact.confidence == 1 and frame.alone and (named == 3 or _selects_by_mask(frame, part, base)):
                fact = fact.but(confidence=2)  # a guess that was compared, then used as an index: it was an array
            if named:
                if mask is None or fact.confidence > mask.confidence:
                    mask = fact if named == 3 else fact.but(confidence=min(fact.confidence, named))
                    at = part
                change = 1 - fact.ndim if fact.ndim is not None else None
            elif fact.ndim == 0:
                if (istensor or base.kind is ARRAY) and fact.dtype is not FLOAT:
                    frame.emit(Op.SCALAR_INDEX, node, part, fact, base.confidence)
                elif base.kind is NOTHING_KNOWN and fact.dtype is INT:
                    frame.emit(Op.SCALAR_INDEX, node, part, fact, 1)  # of a list, too
                change = -1
            else:
                known = as_one_position(frame, part, fact, base, adds and len(parts) > 1) if fact.ndim is None else 0
                if known:
                    frame.emit(Op.SCALAR_INDEX, node, part, fact, known)
                dynamic = dynamic or fact.shape is DYNAMIC
                change = fact.ndim - 1 if fact.ndim is not None else None
        elif fact.kind is SCALAR:
            change = -1
            single = True
        elif fact.kind is SEQUENCE or fact.kind is ARRAY:
            if base.kind is not ARRAY and fact.elements and element(fact).kind is TENSOR:
                from_host(frame, node, part, element(fact), base)
            if (
                istensor
                and (fact.kind is ARRAY or kind is ast.List or kind is ast.ListComp or _is_range(part))
                and not _same_numbers(part)
            ) or (istensor and len(parts) > 1 and _numbers(fact)):
                frame.emit(Op.INDEX_LIST, node, part, base, 2)
            elif istensor and kind in (ast.Name, ast.Attribute) and isinstance(fact.ref, Items):
                each = element(fact).kind
                if isinstance(fact.ref, Listed) and each in (SCALAR, NOTHING_KNOWN):
                    frame.emit(Op.INDEX_LIST, node, part, base, 2)
                elif each is SCALAR:  # a list that was filled, or a tuple: one of each dimension
                    frame.emit(Op.INDEX_LIST, node, part, base, 1)
        elif fact is NONE:
            change = 1
        elif fact is COMPARED and (istensor or base.kind is NOTHING_KNOWN):
            if mask is None and (istensor or not _is_table(node.value, part)):
                confidence = 2 if istensor or frame.alone else 1
                why = f"indexed with a comparison, `{ast.unparse(part)}`, as only an array can be"
                mask = tensor(BOOL, base.device, confidence, why)
                at = part
        elif (
            fact.kind is NOTHING_KNOWN and (base.confidence < 2 or not istensor) and _selects_by_mask(frame, part, base)
        ):
            mask = tensor(BOOL, base.device, 2, f"`{ast.unparse(part)}` is what people call a mask")
            at = part
        elif fact.kind is NOTHING_KNOWN and istensor and mask_like(part):
            mask = mask or base.but(
                confidence=min(mask_like(part) if "mask" in ast.unparse(part).lower() else 1, base.confidence),
                dtype=ANY_DTYPE,
                ndim=None,
                why=f"`{ast.unparse(part)}` is what people call a mask",
            )
            at = part
        ndim = None if ndim is None or change is None else ndim + change
    if mask is not None:
        if not istensor and base.kind is not NOTHING_KNOWN:
            return Indexed(mask, at, base if base.kind is ARRAY else UNKNOWN)
        kept = base if istensor else mask.but(dtype=ANY_DTYPE, confidence=min(mask.confidence, 2))
        confidence = min(kept.confidence, mask.confidence)
        return Indexed(
            mask,
            at,
            like(mask, node, dtype=kept.dtype, device=kept.device, shape=DYNAMIC, ndim=ndim, confidence=confidence),
        )
    if istensor:
        if ndim is not None and ndim < 0:
            ndim = None
        shape = DYNAMIC if dynamic else base.shape
        return Indexed(None, None, like(base, node if single else (), shape=shape, ndim=ndim))
    if base.kind is NOTHING_KNOWN and any(evaluate(frame, part).kind is ARRAY for part in parts if name_of(part)):
        return Indexed(None, None, PICKED)
    return Indexed(None, None, base if base.kind is ARRAY else UNKNOWN)


def _is_length(bound: ast.expr) -> bool:
    """Whether it is one of what people call lengths, `lengths[i]`: where they are given beside a batch, a tensor."""
    return isinstance(bound, ast.Subscript) and _LENGTHS.search(name_of(bound.value)) is not None


def _selects_by_mask(frame: Frame, part: ast.expr, base: Fact) -> bool:
    """Whether an index is surely called a mask, in a file that has no arrays but torch's: `pred[graph.train_mask]`."""
    return (
        base.kind in (TENSOR, NOTHING_KNOWN)
        and frame.alone
        and mask_like(part) == 2
        and "mask" in last_word(part).lower()
    )


def _is_table(base: ast.expr, mask: ast.expr) -> bool:
    """Whether a mask asks a column of what it selects from, by its name: `rows[rows["end"] > start]` is no tensor.

    Nor is what most likely has columns, `rows[rows[name] == value]`: a tensor would have a row pick among rows.
    """
    text = ast.unparse(base)
    return any(
        isinstance(each, ast.Subscript)
        and (isinstance(each.slice, ast.Name) or _is_text(each.slice))
        and ast.unparse(each.value) == text
        for each in walk(mask)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _numbers(fact: Fact) -> bool:
    """Whether it is a tuple or a list of numbers that are written out."""
    return fact.ref is Tag.NUMBERS or (bool(fact.elements) and all(each.kind is SCALAR for each in fact.elements))


def picked_from_host(frame: Frame, node: ast.expr, beside: bool) -> None:
    """`model(rows[np.random.choice(n, k)])`: what a network is given, or meets a tensor, was one when it was picked."""
    if beside and isinstance(node, ast.Subscript):
        frame.emit(Op.INDEX_HOST, node, node.slice, tensor(confidence=2, why=node))


def in_a_module(frame: Frame) -> bool:
    """Whether this is a method of an `nn.Module`: what such a method is given lives where the module was moved to."""
    return frame.cls is not None and not frame.on_host and instance(frame.cls).kind is MODULE


_LENGTHS = re.compile(r"(^|_)len(s|gths?)?$")
_SENDS = re.compile(rb"\.to\(\s*(?:device=)?self\.\w*device\b")


def _knows_device(frame: Frame) -> bool:
    """Whether an object sends to a device of its own what it is given, in any method: others are given what lies there."""
    return frame.cls is not None and not frame.on_host and any(_SENDS.search(each.text) for each in ancestry(frame.cls))


def _asks_where(frame: Frame) -> bool:
    """Whether a function asks tensors where they live, `zeros(n, device=x.device)`: what it is given may be anywhere."""
    function = frame.function
    return function is not None and not frame.on_host and _speaks_of_a_device(function.node)


@lru_cache(maxsize=8)  # asked for each index
def _speaks_of_a_device(function: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "device" and name_of(each.value) not in ("", "self")
        for each in walk(function)
    )


def _is_sliced(part: ast.expr) -> bool:
    """Whether a slice is taken, which leaves one dimension at least: `at[:, 0]`."""
    return isinstance(part, ast.Subscript) and any(isinstance(each, ast.Slice) for each in each_of(part.slice))


def _meets_another(frame: Frame, parts: list[ast.expr], part: ast.expr) -> bool:
    """Whether a tensor that was not made on the host stands beside this part of an index: `x[torch.arange(n), best]`."""
    others = (evaluate(frame, each) for each in parts if each is not part and isinstance(each, (ast.Name, ast.Call)))
    return any(fact.kind is TENSOR and fact.device is not HOST and fact.confidence >= 2 for fact in others)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _same_numbers(node: ast.expr) -> bool:
    """Whether a list holds at most one number: `x[[0]]` keeps a dimension and copies next to nothing, but copies."""
    return isinstance(node, ast.List) and not node.elts
