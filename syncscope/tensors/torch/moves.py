"""Methods that move a tensor to another device, or to where another one lives: `cpu`, `cuda`, `to`, `type`, `type_as`."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Device, Dtype, Fact
from syncscope.model.heat import Reason
from syncscope.model.ops import Op
from syncscope.project import devices
from syncscope.project.names import ancestry
from syncscope.project.syntax import name_of
from syncscope.tensors import handed_in
from syncscope.tensors.call import Call, device_meant, dtype_meant
from syncscope.tensors.facts import (
    ANY_DTYPE,
    DEFAULT,
    DEVICE,
    HOST,
    NOTHING_KNOWN,
    OTHER,
    SCALAR,
    SOMEWHERE,
    TENSOR,
    TYPES_ON_DEVICE,
    Tag,
    tensor,
)
from syncscope.tensors.instances import is_module
from syncscope.tensors.joins import element
from syncscope.tensors.left_behind import moves_along
from syncscope.tensors.of_a_batch import CONVERTING, SAME, SHAPING, is_cut, of_a_batch
from syncscope.tensors.rows_sent import sends_rows
from syncscope.tensors.sent_parts import sends_a_part
from syncscope.tensors.torch.signatures import DTYPE_NAMED, FACTORIES

FROM_NOTHING = set("zeros ones full eye arange linspace logspace rand randn randint randperm".split())
# methods that leave a tensor where it is
_STAYING = (CONVERTING - {"to"}) | SHAPING | SAME | {"squeeze", "select", "clone"}


def to_the_host(call: Call) -> Fact:
    """`x.cpu()`: a copy for which the host waits, unless it lived there."""
    owner = call.receiver
    if not call.flag("non_blocking"):
        if owner.device is HOST and of_a_batch(owner):
            owner = owner.but(device=SOMEWHERE)  # whoever copies it to the host met one that was not there
        if owner.confidence == 1 and isinstance(call.at, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            owner = owner.but(confidence=2)  # no module or container can be calculated with
        call.emit(Op.CPU, call.at, owner)
        call.frame.work = False
    return call.result(owner, device=HOST)


def to(call: Call) -> Fact:
    """`x.to(...)`, `x.cuda(...)`: a copy for which the host waits, one way or the other; or another dtype alone."""
    owner = call.receiver
    target, dtype = (DEVICE, owner.dtype) if call.word == "cuda" else asked_for(call)
    # Beside another tensor it most often is there already: only where it surely lives elsewhere is it copied.
    beside = any(f.kind is TENSOR for f in call.args) or any(
        isinstance(at, ast.Attribute) and at.attr == "device"
        for at in (*call.nodes, *(k.value for k in call.node.keywords))
    )
    second = call.nodes[1] if len(call.nodes) > 1 else None
    if not call.flag("non_blocking") and not (isinstance(second, ast.Constant) and second.value is True):
        _copied(call, target, beside)
    sent = target is not None and target is not HOST and owner.confidence == 1 and of_a_batch(owner)
    return call.result(
        dtype=dtype,
        device=owner.device if target is None else target,
        confidence=2 if sent else None,  # of what a loader gives only tensors are sent to a device
    )


def asked_for(call: Call) -> tuple[Device | None, Dtype]:
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
    """Tell of a copy from one place to another; `beside`: to where another tensor lives."""
    owner, at = call.receiver, call.at
    if target is None or _has_no_elements(owner):
        return
    if target is HOST:
        if owner.device is not HOST:
            unsure = owner.device is SOMEWHERE and (beside or (isinstance(at, ast.Call) and _perhaps_of_host(owner)))
            call.emit(Op.CPU, at, owner, 1 if unsure else 3)
    elif target is DEFAULT:
        if owner.device in (SOMEWHERE, DEVICE) and not beside:
            call.emit(Op.CPU, at, owner, 2)
    elif owner.device is HOST:
        _sent_from_host(call, target, beside)
    elif owner.device is SOMEWHERE:
        _sent(call, target, beside)


def _sent_from_host(call: Call, target: Device, beside: bool) -> None:
    """Tell of a tensor of the host that is sent."""
    owner, at = call.receiver, call.at
    made = _made_here(at)
    sent = beside or made or of_a_batch(owner) or _place_named(call) or (owner.confidence == 3 and not _may_stay(call))
    confidence = 3 if target is DEVICE else 2 if sent else 1
    call.emit(Op.CREATED_ON_HOST if made else Op.TO_DEVICE, at, owner.but(device=target), confidence)


def _sent(call: Call, target: Device, beside: bool) -> None:
    """Tell of a tensor that is sent, of which only what is around says that it lives on the host."""
    owner, at = call.receiver, call.at
    of_batch = of_a_batch(owner) or sends_a_part(call) or sends_rows(call)
    if not of_batch and handed_in.is_sent(call):
        of_batch, owner = True, element(handed_in.HANDED)
    if of_batch and not _beside_a_tensor(call):
        call.emit(Op.TO_DEVICE, at, owner.but(device=target, confidence=2), 2)
    elif _stays_on_host(call, beside):
        call.emit(Op.TO_DEVICE, at, owner.but(device=DEVICE), 2)
    elif target is DEVICE and not beside and of_arrays(owner):
        call.emit(Op.CREATED_ON_HOST if _made_here(at) else Op.TO_DEVICE, at, owner.but(device=DEVICE), 2)
    elif target is SOMEWHERE and not beside and call.word == "to" and not _made_there(call.node, owner):
        call.emit(Op.TO_DEVICE, at, owner, 1)  # nothing is known of either side


def of_arrays(fact: Fact | None) -> bool:
    """Whether `torch.as_tensor` made it of what nothing is known of, and perhaps methods converted it: most often an array."""
    while fact is not None and fact.kind is TENSOR and isinstance(fact.provenance, ast.Call):
        word = name_of(fact.provenance.func)
        if word in ("as_tensor", "asarray"):
            return fact.source is None
        if word not in CONVERTING | SHAPING | SAME:
            return False
        fact = fact.source
    return False


def _beside_a_tensor(call: Call) -> bool:
    """Whether it goes where a tensor is, or what may be one; a trainer, and what it is told, knows the device of the model."""
    if any(fact.kind is TENSOR for fact in call.args):
        return True
    named = (at for at in (*call.nodes, *(k.value for k in call.node.keywords)) if isinstance(at, ast.Attribute))
    owners = (at.value for at in named if at.attr == "device")
    return any(not devices.knows_device(name_of(each)) for each in owners)


def _has_no_elements(fact: Fact | None) -> bool:
    """Whether a tensor was made with none, and perhaps converted or shaped: nothing is copied, and nobody waits."""
    while fact is not None and fact.kind is TENSOR:
        if fact.ref is Tag.EMPTY:
            return True
        said = fact.provenance
        if not (isinstance(said, ast.Call) and name_of(said.func) in CONVERTING | SHAPING):
            return False
        fact = fact.source
    return False


def _place_named(call: Call) -> bool:
    """Whether it goes to a device that is known as one, though not which: where another tensor lives, or one that is chosen.

    Not so a parameter that may be None, for then it stays.
    """
    named = any(fact.ref is Tag.DEVICE for fact in (*call.args, call.keywords.get("device", UNKNOWN)))
    return named and not _may_stay(call)


def _may_stay(call: Call) -> bool:
    """Whether the device is a parameter that may be left out."""
    function = call.frame.function
    named = (*call.nodes, *(k.value for k in call.node.keywords if k.arg == "device"))
    return function is not None and any(
        isinstance(at, ast.Name) and at.id in function.left_out and function.passed.get(at.id) is None for at in named
    )


def _stays_on_host(call: Call, beside: bool) -> bool:
    """Whether one path made it on the host, or its object keeps it there."""
    heat = call.frame.heat
    moved = heat is not None and heat.reason is Reason.MOVED  # and kept: most often it is there
    return (_perhaps_of_host(call.receiver) and not moved) or (beside and _set_up_on_host(call))


def _perhaps_of_host(fact: Fact | None) -> bool:
    """Whether one path made it on the host, and perhaps methods converted or shaped it: `to_tensor(x).float()`."""
    while fact is not None and fact.kind is TENSOR and fact.device is SOMEWHERE:
        if fact.ref is Tag.PERHAPS_OF_HOST:
            return True
        said = fact.provenance
        if not (isinstance(said, ast.Call) and name_of(said.func) in _STAYING):
            return False
        fact = fact.source
    return False


def _set_up_on_host(call: Call) -> bool:
    """Whether its object keeps it where `__init__` made it, on the host, until it is asked to send it elsewhere.

    So does a module with what is no buffer.
    """
    at, cls = call.at, call.frame.cls
    if cls is None or not isinstance(at, ast.Attribute) or name_of(at.value) != "self":
        return False
    kin = ancestry(cls)
    if not any(at.attr in each.made_on_host for each in kin):
        return False
    return not is_module(cls) or not any(moves_along(each, at.attr) for each in kin)


_TRIANGLES = frozenset(("triu", "tril"))


def _made_here(node: ast.AST | None) -> bool:
    """Whether this makes a tensor, `torch.zeros(n)`, and perhaps converts it: `torch.zeros(n).long()`.

    What is made of no values may have another shape, too, `torch.arange(n).unsqueeze(0)`: it can be made anywhere.
    """
    shaped = False
    while True:
        if isinstance(node, ast.Subscript) and is_cut(node.slice):
            node, shaped = node.value, True
            continue
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return False
        word, owner = node.func.attr, node.func.value
        if word in _TRIANGLES and name_of(owner) == "torch" and node.args:
            node = node.args[0]
            continue
        if word in FACTORIES:
            return not shaped or word in FROM_NOTHING
        if word not in CONVERTING and word not in SHAPING and word not in SAME:
            return False
        node, shaped = owner, shaped or word in SHAPING


def converted(call: Call) -> Fact:
    """`x.type(torch.float)` converts; a type of tensors, `torch.cuda.FloatTensor` or `y.type()`, says where, too."""
    if not call.args and not call.keywords:
        return Fact(OTHER, confidence=3, ref=Tag.TEXT, source=call.receiver)  # what it is called
    ref = call.first.ref
    if ref is Tag.TEXT and call.first.source is not None:
        return _as_another(call, call.first.source)
    if isinstance(ref, str) and ref.startswith("torch.") and ref.endswith("Tensor"):
        target = DEVICE if ref.startswith(TYPES_ON_DEVICE) else HOST
        _copied(call, target, beside=False)
        return call.result(dtype=DTYPE_NAMED.get(ref.rpartition(".")[2], ANY_DTYPE), device=target)
    return call.result(dtype=ANY_DTYPE)


def like_another(call: Call) -> Fact:
    """`x.type_as(y)`: the dtype of `y`, where `y` lives, which is a tensor: nothing else is taken."""
    other = call.first if call.first.kind is TENSOR else tensor(confidence=2, why=call.node)
    return _as_another(call, other)


def _as_another(call: Call, other: Fact) -> Fact:
    owner = call.receiver
    if other.device is not HOST and (owner.device is HOST or owner.device is SOMEWHERE):
        _copied(call, other.device, beside=True)
    return call.result(dtype=other.dtype, device=other.device)


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
