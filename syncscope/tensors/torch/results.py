"""What the result of a torch call looks like, and the Python numbers that it takes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ARRAY,
    DYNAMIC,
    HOST,
    INT,
    NONE,
    NOTHING_KNOWN,
    OTHER,
    SCALAR,
    SEQUENCE,
    TENSOR,
    holds_tensor,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.facts import SPREAD as STARRED
from syncscope.tensors.frame import evaluate
from syncscope.tensors.torch.signatures import SPREAD, method
from syncscope.tensors.torch.signatures import function as signature_of


def one_less(fact: Fact | None) -> int | None:
    """One dimension less, where the number is known."""
    return fact.ndim - 1 if fact is not None and fact.ndim else None


def of_pair(call: Call, held: Fact | None) -> int | None:
    """How many dimensions each of two results has, of values that come with positions: `x.sort()`, `x.max(1)`."""
    if held is not None and (call.word in ("sort", "topk", "cummax", "cummin") or call.flag("keepdim")):
        return held.ndim
    return one_less(held) if call.word in ("max", "min", "median", "mode") else None


def names_dim(call: Call, at: int) -> bool:
    """Whether a reduction names a dimension; `max(a, b)` of two tensors is not one."""
    args, keywords = call.args, call.keywords
    if "dim" in keywords or "axis" in keywords:
        return keywords.get("dim") is not NONE
    if call.word in ("sort", "topk", "kthvalue", "cummax", "cummin"):
        return True
    return len(args) > at and args[at].kind is not TENSOR and args[at] is not NONE


def scalar_slots(call: Call, name: str, shift: int) -> bool:
    """Tensors where a Python number is taken; whether one of them makes a size. `shift` is 1 for a method."""
    signature = signature_of(name) if shift == 0 else method(name)
    if signature is None or not signature.slots:
        return False
    sized = False
    for position, fact in enumerate(call.args):
        if fact is STARRED:
            sized |= _unpacked(call, position, signature.places.get(position + shift), signature.slots)
            continue
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


def _unpacked(call: Call, position: int, slot: str | None, slots: Mapping[str, bool]) -> bool:
    """`x.permute(*order)`: what a tensor is unpacked to is read one by one, where numbers are taken."""
    at = call.nodes[position]
    if slot is None or not isinstance(at, ast.Starred):
        return False
    fact = evaluate(call.frame, at.value)
    if fact.kind is TENSOR:
        call.emit(Op.SIZE if slots[slot] else Op.SCALAR_SLOT, at.value, fact)
    return slots[slot]


_BOUNDED = frozenset(("clamp", "clamp_", "clip", "clip_"))


def bounds(call: Call, shift: int) -> None:
    """`x.clamp(0, most)`: beside a number, another bound is taken for one, too; two tensors stay on the device."""
    if call.word not in _BOUNDED:
        return
    low, high = ((1 - shift, "min"), (2 - shift, "max"))
    given = [(call.given(*each), call.node_of(*each)) for each in (low, high)]
    if any(fact.kind is SCALAR for fact, _ in given):
        for fact, at in given:
            if fact.kind is TENSOR:
                call.emit(Op.SCALAR_SLOT, at, fact)


_TAKE_SIZE = {
    "interpolate": (1, "size"),
    "upsample": (1, "size"),
    "fold": (1, "output_size"),
    **dict.fromkeys(("max_unpool1d", "max_unpool2d", "max_unpool3d"), (5, "output_size")),
}  # of functions that torch writes in Python, and which no schema tells of


def sized_by(call: Call) -> None:
    """A tensor in the size that such a function is asked for."""
    slot = _TAKE_SIZE.get(call.word)
    if slot is not None and (at := call.node_of(*slot)) is not None:
        _slot(call, at, call.given(*slot), True)


def _is_no_number(call: Call, fact: Fact) -> bool:
    """Whether what stands in a method's place of numbers is none: a size that is called a tensor, `x.view(shape)`, or what a
    module takes whose method is called like a tensor's, `self.ctc.log_softmax(x)`."""
    if fact.kind is not TENSOR or fact.ndim is not None or call.word.startswith("new_"):
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
    at = call.node_of(len(call.nodes), "output_size")
    function = call.frame.function
    left_out = function is not None and isinstance(at, ast.Name) and function.left_out.get(at.id, "") is None
    unknown = left_out or (size.kind is NOTHING_KNOWN and at is not None)  # handed on from a parameter, most often None
    if repeats.kind is TENSOR and (size is NONE or unknown):
        call.emit(Op.REPEAT_INTERLEAVE, operand_of(call), repeats, 1 if unknown else 3)
        return call.result(held, shape=DYNAMIC, confidence=confidence)
    if size.kind is TENSOR:
        call.emit(Op.SIZE, at, size)
    return call.result(held, ndim=-1 if "dim" in call.keywords else None, confidence=confidence)
