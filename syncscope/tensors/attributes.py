"""Attributes of objects of the project: what `__init__` and the other methods set on them."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.source import line_starts
from syncscope.project import conventions
from syncscope.project.modules import Class
from syncscope.project.names import ancestry, outside
from syncscope.project.syntax import name_of, walk
from syncscope.tensors.annotations import annotated
from syncscope.tensors.facts import (
    FIXED,
    HOST,
    MODULE,
    NONE,
    NOTHING_KNOWN,
    OTHER,
    SOMEWHERE,
    TENSOR,
    holds_tensor,
    sequence,
)
from syncscope.tensors.frame import Frame
from syncscope.tensors.instances import Bound, Instance, instance, set_up_by
from syncscope.tensors.joins import if_given, join
from syncscope.tensors.left_behind import is_left_behind, movers, moves_along, moves_by_name
from syncscope.tensors.settling import Settling

# apart, for each is then looked for as a word
_REGISTERS = re.compile(rb"register_buffer\("), re.compile(rb"Parameter\(")
_PROPERTIES = frozenset(("property", "cached_property"))


def attribute(owner: Fact, name: str, frame: Frame | None = None) -> Fact | None:
    """An attribute of an object of a class of the project; None when the class does not say."""
    ref = owner.ref
    if not isinstance(ref, Instance):
        return None
    cls = ref.cls
    for each in ancestry(cls):
        if not each.prepared:
            prepare(each)
        fact = each.attributes.get(name)
        if fact is None or fact is NONE:
            fact = _registered(each, name) or fact
        if fact is not None:
            if frame is not None and (fact is NONE or (fact.device is HOST and _is_early(fact))):
                _asked_early(frame, each, name)
            if fact.kind is TENSOR and fact.device is SOMEWHERE and name in each.made_on_host and owner.kind is MODULE:
                return fact.but(device=HOST) if is_left_behind(cls, name) else fact
            return fact.but(device=SOMEWHERE) if _sent_since(fact, each, name, owner, frame) else fact
        method = each.methods.get(name)
        if method is not None:
            if not _PROPERTIES.isdisjoint(method.decorators()):
                return method.module.project.interpreter.run(method, (frame.depth if frame else 0) + 1)
            return Fact(OTHER, confidence=3, ref=Bound(method, owner))
        annotation = each.fields.get(name)
        if annotation is not None:
            if frame is not None and frame.function is not None and each.module is frame.module:
                each.asked_by[frame.function] = None
            fact = annotated(each.module, annotation, f"`{name}` is annotated as a tensor")
            if fact.kind is not NOTHING_KNOWN:
                return fact
        named = _named(each, name)
        if named is not None:
            return named
    if frame is not None:
        _asked_early(frame, cls, name)
    return None


def _sent_since(fact: Fact, cls: Class, name: str, owner: Fact, frame: Frame | None) -> bool:
    """Whether what an object was made with on the host is asked for elsewhere, and its class sends it to a device."""
    if fact.kind is not TENSOR or fact.device is not HOST:
        return False
    if moves_by_name(cls):
        return frame is None or frame.function is None or frame.function.name not in set_up_by(cls)
    if owner.kind is MODULE or name not in cls.made_on_host:
        return False
    if frame is None or frame.cls is None or cls not in ancestry(frame.cls):
        return moves_along(cls, name)
    function = frame.function
    return function is not None and any(
        movers(each.node).get(name, set()) - {function.name} for each in ancestry(frame.cls)
    )


def elements(owner: Fact, frame: Frame) -> Fact:
    """The same as a tuple, where it is one whose elements have names: it is unpacked, or indexed by a number."""
    cls = owner.ref.cls if isinstance(owner.ref, Instance) else None
    if cls is None or not any(each.rpartition(".")[2] == "NamedTuple" for each in outside(cls)):
        return owner
    return sequence(*(attribute(owner, name, frame) or UNKNOWN for name in cls.fields))


def give_fields(made: Fact, cls: Class, given: Iterable[tuple[str | None, Fact]], frame: Frame) -> None:
    """Remember what the annotated fields of an object are given where it is made; who asked before asks again."""
    before = dict(cls.attributes)
    for name, fact in given:
        annotation = cls.fields.get(name) if name is not None else None
        if name is not None and annotation is not None and holds_tensor(fact) is not None:
            set_attribute(made, name, _as_announced(fact, annotated(cls.module, annotation)), frame)
    if cls.asked_by and cls.attributes != before and frame.waits is not None:
        for function in cls.asked_by:
            function.news, function.bound = True, {}
            frame.module.functions.append(function)
        cls.asked_by.clear()


def _as_announced(fact: Fact, said: Fact) -> Fact:
    """What is given, and as sure as what is announced."""
    if fact.kind is TENSOR and said.kind is TENSOR:
        return fact.but(confidence=max(fact.confidence, said.confidence))
    if fact.elements and len(fact.elements) == len(said.elements):
        return sequence(*map(_as_announced, fact.elements, said.elements))
    return fact


def _named(cls: Class, name: str) -> Fact | None:
    """What a class has under another name, of itself: `distribution_class = distributions.Normal`."""
    value = cls.named.get(name)
    return cls.module.project.interpreter.value(cls.module, value) if value is not None else None


def _registered(cls: Class, name: str) -> Fact | None:
    """A buffer or a parameter that any method of a module registers: `__init__` may leave that to others."""
    if cls.registered is None:
        cls.registered = dict(_registrations(cls)) if instance(cls).kind is MODULE else {}
    made = cls.registered.get(name)
    return Fact(TENSOR, device=SOMEWHERE, shape=FIXED, confidence=3, why=made) if made is not None else None


@lru_cache(maxsize=64)  # the classes of a file are asked one after the other, with those that they are derived from
def _registering(source: bytes) -> list[int]:
    """The lines of a file that may register something."""
    found = [match.start() for each in _REGISTERS for match in each.finditer(source)]
    return sorted(bisect_right(line_starts(source), start) for start in found) if found else []


def _registrations(cls: Class) -> Iterator[tuple[str, ast.expr]]:
    lines = _registering(cls.module.source)
    for method in cls.methods.values() if lines else ():
        at = bisect_left(lines, method.node.lineno)
        if at == len(lines) or lines[at] > (method.node.end_lineno or 0):
            continue
        for node in walk(method.node):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer"),
                    args=[ast.Constant(value=str(name)), value, *_],
                ) if not isinstance(value, ast.Constant):
                    yield name, node
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call(func=func) as value
                ) if name_of(func) == "Parameter":
                    yield name, value


def prepare(cls: Class) -> None:
    """See what `__init__` (and the first pass over the other set-up methods) sets on the object."""
    if cls.prepared:
        return
    cls.prepared = True
    with Settling(None, cls):
        for name in set_up_by(cls):
            method = cls.methods.get(name)
            if method is not None:
                cls.module.project.interpreter.run(method, 1)


def set_attribute(owner: Fact, name: str, fact: Fact, frame: Frame) -> None:
    """Remember what is set on an object, joined with what was set before.

    Of a class of another file that is what the class itself sets up: what else is set depends on who was looked at before.
    """
    ref = owner.ref
    if isinstance(ref, Instance) and fact.kind is not NOTHING_KNOWN and not conventions.are_names(name):
        there = if_given(fact)
        here = there.kind is TENSOR and there.device is HOST
        if owner.kind is MODULE:  # which leaves behind what is no buffer, where that was made and not given
            here = here and isinstance(there.provenance, ast.Call)
        if fact.kind is TENSOR and fact.device is HOST and owner.kind is MODULE and there.source is None:
            fact = fact.but(device=SOMEWHERE)  # given to `__init__`: people move it with the module
        elif fact.kind is MODULE and fact.device is HOST:
            fact = fact.but(device=SOMEWHERE)  # so with an object that holds a module
        if _sets_up(frame, ref.cls):
            kept = ref.cls.made_on_host
            if fact is not NONE:  # what may be None is there or not
                kept.add(name) if here else kept.discard(name)
        elif not ref.cls.module.linted:
            return
        before = ref.cls.attributes.get(name)
        now = ref.cls.attributes[name] = fact if before is None else join(before, fact)
        early = before is None or _is_early(before)
        if early and now.kind in (TENSOR, MODULE) and not (_is_early(now) or _is_moved(fact)):
            _ask_again(ref.cls, name, frame)


def _is_early(fact: Fact) -> bool:
    """Whether a later step may find more than this in an attribute: None, or a tensor of the host, until one is kept."""
    return fact is NONE or (fact.kind is TENSOR and fact.device is HOST)


def _is_moved(fact: Fact) -> bool:
    """Whether it was sent just now: what is moved once lay where it did before."""
    made = fact.provenance
    return isinstance(made, ast.Call) and name_of(made.func) in ("to", "cuda", "type_as")


def _asked_early(frame: Frame, cls: Class, name: str) -> None:
    """Note who asks for what the next step may find changed."""
    if frame.waits is not None and frame.function is not None and cls.module is frame.module:
        cls.asked_early.setdefault(name, {})[frame.function] = None


def _ask_again(cls: Class, name: str, frame: Frame) -> None:
    """Have those run once more that asked for it before: the next step finds what this one keeps."""
    if frame.waits is None:
        return
    for function in cls.asked_early.pop(name, ()):
        function.news, function.bound = True, {}
        frame.module.functions.append(function)


def _sets_up(frame: Frame, cls: Class) -> bool:
    """Whether a set-up method of this class is run here, whoever calls it and with what."""
    by = frame.function
    return by is not None and by.cls is cls and by.name in set_up_by(cls) and not frame.inlined
