"""Bindings: what a name, an attribute or an item of a container is given."""

from __future__ import annotations

import ast

from syncscope.heat.by_name import by_name
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Heat, Reason, Role
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.syntax import dotted, name_of
from syncscope.tensors.annotations import annotated
from syncscope.tensors.attributes import elements, set_attribute
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    BOOL,
    COMPARED,
    DEVICE,
    HOST,
    OTHER,
    SCALAR,
    SEQUENCE,
    SIZE,
    TENSOR,
    TRUTH,
    Items,
    items,
    on_host,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.guards import Asked
from syncscope.tensors.instances import Instance
from syncscope.tensors.joins import element, join
from syncscope.tensors.made_of import bindings_of, statements
from syncscope.tensors.operators import binary
from syncscope.tensors.parameters import announced
from syncscope.tensors.torch.host_values import copied_in, number_written
from syncscope.tensors.torch.indexing import index


def bind(frame: Frame, target: ast.expr, fact: Fact, value: ast.expr | None = None) -> None:
    """Give a value to the target of an assignment, a loop or a with."""
    kind = target.__class__
    if kind is ast.Name:
        name = target.id  # type: ignore[attr-defined]  # checked by class, which is faster than isinstance
        if frame.function is not None and name in frame.function.names and (fact is UNKNOWN or _is_guess(fact)):
            fact = _as_announced(frame.function, name, fact)
        if fact.kind is SEQUENCE and name in conventions.OF_THE_HOST:
            fact = items(on_host(element(fact)))
        frame.env[name] = used_so(frame, name, fact) if name in frame.used else fact
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), None)
        count = len(target.elts)
        fact = elements(fact, frame)
        for position, each in enumerate(target.elts):
            if isinstance(each, ast.Starred):
                rest = fact.elements[position : len(fact.elements) - (count - position - 1)] if fact.elements else ()
                bind(
                    frame,
                    each.value,
                    sequence(*rest) if rest else items(element(fact)) if fact.kind in (SEQUENCE, TENSOR) else UNKNOWN,
                )
            else:
                at = position if starred is None or position < starred else position - count
                bind(frame, each, _as_called(each, element(fact, at)))
    elif isinstance(target, ast.Attribute):
        owner = evaluate(frame, target.value)
        if isinstance(owner.ref, Instance):
            set_attribute(owner, target.attr, fact, frame)
        path = dotted(target)
        if path:
            frame.env[path] = fact
    elif isinstance(target, ast.Subscript):
        write_item(frame, target, fact, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, items(element(fact)))


def _as_called(target: ast.expr, fact: Fact) -> Fact:
    """What a network gives beside others is only guessed to be a tensor where it is called a size: `x, sizes = net(y)`."""
    unsure = fact.kind is TENSOR and fact.confidence == 2
    return fact.but(confidence=1) if unsure and conventions.is_size(name_of(target)) else fact


def _is_guess(fact: Fact) -> bool:
    """Whether it is only guessed to be a tensor: what a network gives."""
    return fact.kind is TENSOR and fact.confidence == 1


def _as_announced(function: ProjectFunction, name: str, fact: Fact) -> Fact:
    """What a parameter is when it is unpacked anew from what nobody knows: a tensor, where it is announced as one."""
    said = announced(function, name)
    if said.kind is not TENSOR or said.confidence < 3:
        return fact if said is UNKNOWN else UNKNOWN
    return tensor(confidence=2, why=f"`{name}` is annotated as a tensor")


def used_so(frame: Frame, name: str, fact: Fact) -> Fact:
    """What a name is given, where its uses say that it is a tensor: a guess is confirmed, what is known stays.

    For a guess it is enough that it is used as an array: what a model gives back, and has a maximum, is a tensor.
    """
    if fact.kind is UNKNOWN.kind:
        if frame.used[name] != 2:
            return fact
        return frame.assumed(name).but(dtype=BOOL) if fact is COMPARED else frame.assumed(name)
    guess = (
        fact.kind is TENSOR and fact.confidence < 2 and (frame.used[name] == 2 or fact.provenance.__class__ is ast.Call)
    )
    return fact.but(confidence=2) if guess else fact


def write_item(frame: Frame, target: ast.Subscript, fact: Fact, value: ast.expr | None) -> None:
    """`base[index] = value`."""
    base = evaluate(frame, target.value)
    if base.kind is SEQUENCE or base is UNKNOWN or base.kind is OTHER:
        remember(frame, target, base, fact)
    elif base.kind is BATCH:
        _sent_one_by_one(frame, target, base, fact, value)
    mask, node, _ = index(frame, target, base)
    number = fact.kind is SCALAR or (fact.kind is TENSOR and fact.ndim == 0 and fact.device is HOST)
    if base.kind is not ARRAY and mask is not None and not (number and not _gathers(frame, target, node)):
        # a number of the host lowers to masked_fill; one that is on the device does not
        confidence = 3 if fact.kind in (TENSOR, SCALAR) else 2 if _is_computed(frame, value) else 1
        if base.kind is not TENSOR:
            confidence = min(confidence, 2)
        frame.emit(
            Op.MASK_WRITE, target, node, mask, min(confidence, base.confidence if base.kind is TENSOR else confidence)
        )
    elif number and mask is not None and base.kind is TENSOR and base.device is HOST:
        frame.emit(Op.MASK_WRITE, target, node, mask, 1)  # most often it is of the host, too; else it is copied there
    if mask is None:
        number_written(frame, target, base, fact, value)
    if value is not None and not _takes_its_place(target, value):
        copied_in(frame, value, value, base, fact, target.slice)


def _sent_one_by_one(frame: Frame, target: ast.Subscript, base: Fact, fact: Fact, value: ast.expr | None) -> None:
    """A batch whose parts are sent in place: by a loop, `batch[key] = part.to(device)`, all of it lives there from then on."""
    held, key = dotted(target.value), target.slice
    if not held or value is None or fact.kind is not TENSOR or fact.device is HOST:
        return
    if not isinstance(key, ast.Constant):
        frame.env[held] = Fact(BATCH, device=DEVICE, confidence=max(base.confidence, 2), why=value, source=base)
    elif isinstance(key.value, str):
        frame.env[held] = items(element(base), {key.value: fact})


def _is_computed(frame: Frame, value: ast.expr | None) -> bool:
    """Whether a call gives what is written under a mask: what is passed in, counted or looked up may be a number."""
    if isinstance(value, ast.Call):
        return not conventions.is_number(name_of(value.func))
    function = frame.function
    if not isinstance(value, ast.Name) or function is None or conventions.is_number(value.id):
        return False
    bound = [
        part for each in statements(function.node) for target, part in bindings_of(each) if name_of(target) == value.id
    ]
    return bool(bound) and all(isinstance(part.expression, ast.Call) for part in bound)


def _gathers(frame: Frame, target: ast.Subscript, mask: ast.expr | None) -> bool:
    """Whether a tensor or list stands in the index beside the mask."""
    if not isinstance(target.slice, ast.Tuple):
        return False
    others = (
        each for each in target.slice.elts if each is not mask and not isinstance(each, (ast.Slice, ast.Constant))
    )
    return any(evaluate(frame, each).kind in (TENSOR, SEQUENCE, ARRAY) for each in others)


def remember(frame: Frame, target: ast.Subscript, base: Fact, fact: Fact) -> None:
    """A dict or list that is filled item by item."""
    held = dotted(target.value)
    if not held or fact.kind is UNKNOWN.kind:
        return
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    ref = base.ref
    if base.kind is SEQUENCE:
        keys = dict(ref.keys) if isinstance(ref, Items) and ref.keys is not None else {}
        each = ref.each if isinstance(ref, Items) else element(base) if base.elements else UNKNOWN
        if key is not None:
            keys[key] = fact
        elif each is not UNKNOWN:
            each = join(each, fact)
        elif not _is_given(frame, held):  # what a caller's container holds besides is not known
            each = fact
        bind(frame, target.value, items(each, keys))
    elif base is UNKNOWN and isinstance(key, str) and isinstance(target.value, ast.Name):
        frame.env[held] = items(UNKNOWN, {key: fact})  # `state["step"] = ...`: it is a dict, of which this is known


def _is_given(frame: Frame, name: str) -> bool:
    """Whether a function is given what has this name."""
    if frame.function is None:
        return False
    a = frame.function.node.args
    return any(each.arg == name for each in (*a.posonlyargs, *a.args, *a.kwonlyargs))


def assign(frame: Frame, node: ast.Assign) -> None:
    """`a = b = value`."""
    value = node.value
    if value.__class__ is ast.Tuple and len(node.targets) == 1 and node.targets[0].__class__ is ast.Tuple:
        pairs(frame, node.targets[0], value)
        return
    before = frame.around
    if value.__class__ is ast.Lambda and frame.function is None and node.targets[0].__class__ is ast.Name:
        frame.around = _of_lambda(frame, node.targets[0].id)
    if value.__class__ is ast.Call and _keeps(node.targets[0], value):
        frame.around = Reason.MOVED()
    fact = frame.table[value.__class__](frame, value)
    frame.around = before
    if fact is TRUTH and ((value.__class__ is ast.Call and value.args) or value.__class__ in (ast.Compare, ast.BoolOp)):
        # `known = isinstance(x, Tensor)`: asked for later
        fact = Fact(SCALAR, BOOL, HOST, confidence=3, ref=Asked(value, frame.env))
    for target in node.targets:
        if target.__class__ is ast.Tuple and fact is SIZE:
            _counted_by_size(frame, target, value)
        if target.__class__ is ast.Name:
            name = target.id
            frame.env[name] = used_so(frame, name, fact) if name in frame.used else fact
        else:
            bind(frame, target, fact, value)


def _counted_by_size(frame: Frame, target: ast.Tuple, size: ast.expr) -> None:
    """`b, t, n = x.size()`: x has three dimensions."""
    of = size.func if isinstance(size, ast.Call) and not size.args else size
    path = dotted(of.value) if isinstance(of, ast.Attribute) and of.attr in ("size", "shape") else ""
    held = frame.env.get(path)
    if held is None or held.kind is not TENSOR or held.ndim is not None:
        return
    if not any(isinstance(each, ast.Starred) for each in target.elts):
        frame.env[path] = held.but(ndim=len(target.elts))


def _takes_its_place(target: ast.Subscript, value: ast.AST) -> bool:
    """`images[0] = images[0].cuda()`: of a list, for in a tensor of the host it would be where it was."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as sent, attr="to" | "cuda")):
            return ast.unparse(sent) == ast.unparse(target)
    return False


def _of_lambda(frame: Frame, name: str) -> Heat:
    """A lambda at the top level runs where it is called, as what `def` makes."""
    said = by_name(name, "", ())
    if said.reason in conventions.SOFT and frame.module.project.role(frame.module.path, name) is Role.CALLED:
        return Reason.CALLED(name)
    return said


def _keeps(target: ast.expr, value: ast.expr) -> bool:
    """`self.x = self.x.to(device)`: from then on it lives there."""
    if value.__class__ is not ast.Call or target.__class__ is not ast.Attribute:
        return False
    func = value.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in ("to", "cuda", "type_as")
        and isinstance(func.value, ast.Attribute)
        and func.value.attr == target.attr
        and dotted(func.value) == dotted(target) != ""
    )


def pairs(frame: Frame, target: ast.Tuple, value: ast.Tuple) -> None:
    """`a, b = x, y` and `b, t, d = *x.shape, x.device`: one by one."""
    facts: list[Fact] = []
    spread = sum(isinstance(each, ast.Starred) for each in value.elts)
    room = len(target.elts) - len(value.elts) + 1
    for each in value.elts:
        if isinstance(each, ast.Starred):
            inner = evaluate(frame, each.value)
            facts += [element(inner, at) for at in range(room)] if spread == 1 else []
        else:
            before = frame.around
            if len(target.elts) == len(value.elts) and _keeps(target.elts[len(facts)], each):
                frame.around = Reason.MOVED()
            facts.append(frame.table[each.__class__](frame, each))
            frame.around = before
    if len(facts) != len(target.elts) or any(isinstance(each, ast.Starred) for each in target.elts):
        bind(frame, target, sequence(*facts) if not spread else UNKNOWN)
        return
    for each, fact in zip(target.elts, facts, strict=True):
        bind(frame, each, fact)


def ann_assign(frame: Frame, node: ast.AnnAssign) -> None:
    """`a: Tensor = value`: what the value is outranks what the annotation says, unless it is unknown."""
    fact = evaluate(frame, node.value) if node.value is not None else UNKNOWN
    said = annotated(frame.module, node.annotation)
    if said.kind is SEQUENCE and name_of(node.target) in conventions.OF_THE_HOST:
        fact = items(on_host(element(said)))
    elif fact.kind is UNKNOWN.kind or (
        said.kind is TENSOR and fact.kind is TENSOR and said.confidence > fact.confidence and fact.confidence < 2
    ):
        fact = said
    if node.value is not None or not isinstance(node.target, ast.Name):
        bind(frame, node.target, fact, node.value)


def aug_assign(frame: Frame, node: ast.AugAssign) -> None:
    """`a += value`."""
    value = evaluate(frame, node.value)
    target = node.target
    if isinstance(target, ast.Subscript):
        base = evaluate(frame, target.value)
        mask, at, _ = index(frame, target, base, adds=True)
        if mask is not None and base.kind is not ARRAY:
            frame.emit(Op.MASK_WRITE, target, at, mask, base.confidence if base.kind is TENSOR else 2)
        return
    before = evaluate(frame, target)
    fact = binary(node, before, value, node.op)
    if before.kind is TENSOR and before.confidence >= 2 and fact.kind is not TENSOR:
        fact = before
    if before.kind is SEQUENCE:
        fact = join(before, value) if value.kind is SEQUENCE else before
    bind(frame, target, fact)
