"""What the result of a torch call looks like, and the Python numbers that it takes."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ARRAY,
    DYNAMIC,
    HOST,
    INT,
    INTEGER,
    NONE,
    OTHER,
    SCALAR,
    SEQUENCE,
    TENSOR,
    element,
    holds_tensor,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.torch.signatures import LOSSES, REDUCTIONS, SPREAD, method
from syncscope.tensors.torch.signatures import function as signature_of

NOTHING_KNOWN = UNKNOWN.kind


def one_less(fact: Fact | None) -> int | None:
    """One dimension less, where the number is known."""
    return fact.ndim - 1 if fact is not None and fact.ndim else None


def names_dim(call: Call, at: int) -> bool:
    """Whether a reduction names a dimension; `max(a, b)` of two tensors is not one."""
    args, keywords = call.args, call.keywords
    if "dim" in keywords or "axis" in keywords:
        return keywords.get("dim") is not NONE
    if call.word in ("sort", "topk", "kthvalue", "cummax", "cummin"):
        return True
    return len(args) > at and args[at].kind is not TENSOR and args[at] is not NONE


_UNTOLD = frozenset(
    """squeeze expand repeat index_select tile matmul einsum where movedim broadcast_to unflatten diag cdist interpolate
    pad unfold linear embedding multi_dot tensordot kron""".split()
)
_ALWAYS = {"indices": 2, "nonzero": 2, "argwhere": 2, "mm": 2, "bmm": 3, "outer": 2, "bincount": 1, "masked_select": 1}


def dimensions(call: Call, held: Fact | None, at: int) -> int | None:
    """The number of dimensions of a result; `at` is the position after the tensor itself."""
    word, args, keywords = call.word, call.args, call.keywords
    ndim = held.ndim if held is not None else None
    if word in LOSSES:
        return None if "reduction" in keywords else 0
    if word in REDUCTIONS:
        return _reduced(call, ndim, at)
    if word in _ALWAYS:
        return _ALWAYS[word]
    if word in _UNTOLD:
        return None
    if word == "stack":
        each = element(args[0]).ndim if args else None
        return None if each is None else each + 1
    if word in ("unsqueeze", "one_hot"):
        return None if ndim is None else ndim + 1
    if word in ("view", "reshape"):
        shapes = args[at:]
        if call.starred:
            return None
        if len(shapes) == 1:
            if shapes[0].kind is SEQUENCE:
                return len(shapes[0].elements) or None
            return 1 if shapes[0].kind is SCALAR else None
        return len(shapes) if shapes and all(s.kind is not SEQUENCE for s in shapes) else None
    if word in ("flatten", "ravel"):
        return 1 if len(args) <= at and not keywords else None
    if word in ("cat", "concat"):
        return element(args[0]).ndim if args else None
    if word in ("diagonal", "select"):
        return None if ndim is None else ndim - 1
    return ndim


def _reduced(call: Call, ndim: int | None, at: int) -> int | None:
    word, args, keywords = call.word, call.args, call.keywords
    if len(args) > at and args[at].kind is TENSOR:
        return ndim if word in ("max", "min") else 0 if word in ("dot", "dist") else None
    whole = len(args) <= at or (word in ("norm", "std", "var") and args[at] is not INTEGER)
    if whole and "dim" not in keywords and "axis" not in keywords:
        return 0
    if (len(args) > at and args[at].kind is SEQUENCE) or keywords.get("dim", UNKNOWN).kind is SEQUENCE:
        return None
    return ndim if call.flag("keepdim") else None if ndim is None else ndim - 1


def scalar_slots(call: Call, name: str, shift: int) -> bool:
    """Tensors where a Python number is taken; whether one of them makes a size. `shift` is 1 for a method."""
    signature = signature_of(name) if shift == 0 else method(name)
    if signature is None or not signature.slots:
        return False
    sized = False
    for position, fact in enumerate(call.args):
        kind = fact.kind
        if kind is SCALAR or kind is NOTHING_KNOWN or kind is OTHER:
            continue
        place = position + shift
        slot = signature.places.get(place)
        if slot is None and place >= signature.spread and name.rpartition(".")[2] in SPREAD:
            slot = signature.places.get(signature.spread)
        if slot is None or (shift and _is_no_number(call, fact)):
            continue
        sized |= _slot(call, call.nodes[position], fact, signature.slots[slot])
    for keyword in call.node.keywords:
        if keyword.arg in signature.slots:
            sized |= _slot(call, keyword.value, call.keywords[keyword.arg], signature.slots[keyword.arg])
    return sized


def _is_no_number(call: Call, fact: Fact) -> bool:
    """Whether what stands in a method's place of numbers is none: a size that is called a tensor, `x.view(shape)`, or what a
    module takes whose method is called like a tensor's, `self.ctc.log_softmax(x)`."""
    if fact.kind is not TENSOR or fact.ndim is not None:
        return False
    return call.receiver.confidence < 3 or (len(call.args) == 1 and call.word in ("view", "reshape", "expand"))


def _slot(call: Call, at: ast.expr, fact: Fact, size: bool) -> bool:
    if fact.kind is TENSOR:
        if fact.ndim is None or fact.ndim == 0 or not size:
            confidence = fact.confidence if fact.ndim == 0 else min(fact.confidence, 2)
            call.emit(Op.SIZE if size else Op.SCALAR_SLOT, at, fact, confidence)
        return size
    if fact.kind is SEQUENCE and size:
        for each in fact.elements:
            if each.kind is TENSOR:
                call.emit(Op.SIZE, at, each)
                return True
    return False


def operand_of(call: Call) -> ast.expr | None:
    """The expression that a torch function works on."""
    return call.node_of(0, "input", "self", "condition")


def subject(call: Call, confidence: int = 3) -> Fact:
    """The tensor that a torch function works on: whatever it is given must be one."""
    first = call.args[0] if call.args else call.keywords.get("input", call.keywords.get("condition", UNKNOWN))
    held = holds_tensor(first)
    if held is not None:  # torch takes nothing else here
        return held if held.confidence >= confidence else held.but(confidence=confidence)
    if first.kind is ARRAY or first.kind is SCALAR:
        return Fact(first.kind, device=HOST, confidence=3)
    return tensor(confidence=confidence, why=call.node)


def positions(call: Call, held: Fact, confidence: int) -> Fact:
    """What `nonzero` gives: one tensor, or one per dimension with `as_tuple=True`."""
    if call.flag("as_tuple"):
        return positions_by_dimension(call, held, confidence)
    return call.result(held, dtype=INT, shape=DYNAMIC, ndim=2, confidence=confidence)


def positions_by_dimension(call: Call, held: Fact, confidence: int) -> Fact:
    """Positions, a tensor for each dimension."""
    each = call.result(held, dtype=INT, shape=DYNAMIC, ndim=1, confidence=confidence)
    return sequence(*(each,) * held.ndim) if held.ndim else items(each)


def distinct(call: Call, held: Fact, confidence: int) -> Fact:
    """What `unique` gives: values, with the inverse and the counts where they are asked for."""
    flat = not any(k.arg == "dim" for k in call.node.keywords)
    values = call.result(held, shape=DYNAMIC, ndim=1 if flat else None, confidence=confidence)
    found = [values]
    if call.flag("return_inverse"):
        whole = held.ndim if flat else 1  # as long as the dimension that is named
        found.append(call.result(held, dtype=INT, ndim=whole, confidence=confidence))
    if call.flag("return_counts"):
        found.append(call.result(held, dtype=INT, shape=DYNAMIC, ndim=1, confidence=confidence))
    return sequence(*found) if len(found) > 1 else values


def repeated(call: Call, held: Fact, repeats: Fact) -> Fact:
    """repeat_interleave: a tensor of repeats makes the length depend on data, unless output_size is given."""
    confidence = max(held.confidence, 2)
    size = call.keywords.get("output_size", NONE)
    unknown = (
        size.kind is NOTHING_KNOWN and "output_size" in call.keywords
    )  # handed on from a parameter, most often None
    if repeats.kind is TENSOR and (size is NONE or unknown):
        call.emit(Op.REPEAT_INTERLEAVE, operand_of(call), repeats, 1 if unknown else 3)
        return call.result(held, shape=DYNAMIC, confidence=confidence)
    return call.result(held, ndim=-1 if "dim" in call.keywords else None, confidence=confidence)
