"""Methods that move a tensor to another device, or to where another one lives: `cpu`, `cuda`, `to`, `type`, `type_as`."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call, device_meant, dtype_meant
from syncscope.tensors.facts import (
    ANY_DTYPE,
    BATCH,
    DEFAULT,
    DEVICE,
    HOST,
    OTHER,
    SCALAR,
    SOMEWHERE,
    TENSOR,
    Tag,
    device_of,
)
from syncscope.tensors.syntax import name_of
from syncscope.tensors.torch.signatures import FACTORIES

NOTHING_KNOWN = UNKNOWN.kind


def to_the_host(call: Call) -> Fact:
    """`x.cpu()`: a copy for which the host waits, unless it lived there."""
    owner = call.receiver
    if not call.flag("non_blocking"):
        if owner.device is HOST and _of_a_batch(owner):
            owner = owner.but(device=SOMEWHERE)  # whoever copies it to the host met one that was not there
        if owner.confidence == 1 and isinstance(call.at, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            owner = owner.but(confidence=2)  # no module or container can be calculated with
        call.emit(Op.CPU, call.at, owner)
        call.frame.work = False
    return call.result(owner, device=HOST)


def to(call: Call) -> Fact:
    """`x.to(...)`, `x.cuda(...)`: a copy for which the host waits, one way or the other; or another dtype alone."""
    owner = call.receiver
    target, dtype = (DEVICE, owner.dtype) if call.word == "cuda" else _asked_for(call)
    # Beside another tensor it most often is there already: only where it surely lives elsewhere is it copied.
    beside = any(f.kind is TENSOR for f in call.args) or any(
        isinstance(at, ast.Attribute) and at.attr == "device"
        for at in (*call.nodes, *(k.value for k in call.node.keywords))
    )
    second = call.nodes[1] if len(call.nodes) > 1 else None
    if not call.flag("non_blocking") and not (isinstance(second, ast.Constant) and second.value is True):
        _copied(call, target, beside)
    return call.result(dtype=dtype, device=owner.device if target is None else target)


def _asked_for(call: Call) -> tuple[Device | None, Dtype]:
    """The device and the dtype that the arguments of `.to` name; no device: it stays where it is."""
    owner, keywords = call.receiver, call.keywords
    target: Device | None = None
    dtype = call.dtype_given()
    named = next((k.value for k in call.node.keywords if k.arg == "device"), None)
    if named is not None:
        target = device_meant(named, keywords["device"], owner.device)
    for at, fact in zip(call.nodes, call.args, strict=False):
        if fact.kind is TENSOR:
            target, dtype = fact.device, fact.dtype
        elif _is_dtype(fact):
            dtype = dtype_meant(fact)
        elif isinstance(at, ast.Constant) and isinstance(at.value, bool):
            continue
        elif (
            fact.ref is Tag.DEVICE
            or isinstance(at, ast.Constant)
            or (target is None and fact.kind in (NOTHING_KNOWN, SCALAR, OTHER))
        ):
            said = at.func if isinstance(at, ast.Call) else at
            word = name_of(said)
            if "dtype" not in word:
                target = device_meant(at, fact, owner.device)
    if dtype is ANY_DTYPE and "dtype" not in keywords and not any(f.ref is Tag.DTYPE for f in call.args):
        dtype = owner.dtype
    return target, dtype


def _is_dtype(fact: Fact) -> bool:
    ref = fact.ref
    return ref is Tag.DTYPE or (
        isinstance(ref, str) and ref.startswith(("builtins.", "torch.")) and ref is not Tag.DEVICE
    )


def _copied(call: Call, target: Device | None, beside: bool) -> None:
    owner, at = call.receiver, call.at
    lost = owner.device is SOMEWHERE and not beside
    if target is HOST:
        if owner.device is not HOST:
            call.emit(Op.CPU, at, owner, 1 if beside and owner.device is SOMEWHERE else 3)
    elif lost and target in (DEVICE, SOMEWHERE) and _of_a_batch(owner):
        call.emit(Op.TO_DEVICE, at, owner.but(device=target, confidence=2), 2)
    elif target is DEFAULT:
        if owner.device in (SOMEWHERE, DEVICE) and not beside:
            call.emit(Op.CPU, at, owner, 2)
    elif target is not None and owner.device is HOST:
        made = isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr in FACTORIES
        confidence = 3 if target is DEVICE else 2 if beside or made else 1
        call.emit(Op.CREATED_ON_HOST if made else Op.TO_DEVICE, at, owner.but(device=target), confidence)
    elif target is SOMEWHERE and lost and call.word == "to" and not _made_there(call.node, owner):
        call.emit(Op.TO_DEVICE, at, owner, 1)  # nothing is known of either side


def converted(call: Call) -> Fact:
    """`x.type(torch.float)` converts; a class of the host, `x.type(torch.FloatTensor)`, copies it there."""
    ref = call.first.ref
    if isinstance(ref, str) and ref.startswith("torch.") and ref.endswith("Tensor") and ".cuda." not in ref:
        _copied(call, HOST, beside=False)
        return call.result(dtype=dtype_meant(call.first), device=HOST)
    return call.result(dtype=ANY_DTYPE)


def like_another(call: Call) -> Fact:
    """`x.type_as(y)`: the dtype of `y`, where `y` lives."""
    owner, other = call.receiver, call.first
    if other.kind is not TENSOR:
        return call.result(dtype=ANY_DTYPE)
    if owner.device is HOST and other.device is not HOST:
        _copied(call, other.device, beside=True)
    return call.result(dtype=other.dtype, device=device_of(owner, other))


def _made_there(node: ast.Call, fact: Fact | None) -> bool:
    """Whether the tensor was made, or moved before, with the very words that now say where it is to be."""
    to = {ast.unparse(at) for at in (*node.args, *(k.value for k in node.keywords if k.arg == "device"))}
    for _ in range(8):
        if fact is None:
            return False
        said = fact.provenance
        if isinstance(said, ast.Call) and said is not node:
            moved = said.args if getattr(said.func, "attr", "") == "to" else []
            if to & {ast.unparse(at) for at in (*moved, *(k.value for k in said.keywords if k.arg == "device"))}:
                return True
        fact = fact.source
    return False


def _of_a_batch(fact: Fact) -> bool:
    """Whether it is part of what people call a loader's: batches are made on the host."""
    source = fact.source
    while source is not None and source.kind is TENSOR and fact.provenance == () and source.provenance == ():  # joined
        source = source.source
    return source is not None and source.kind is BATCH and fact.provenance == ()
