"""Attributes of objects of the project: what `__init__` and the other methods set on them."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions
from syncscope.project.modules import Class
from syncscope.project.names import ancestry
from syncscope.tensors.annotations import annotated
from syncscope.tensors.facts import (
    HOST,
    MODULE,
    OTHER,
    SOMEWHERE,
    TENSOR,
    join,
)
from syncscope.tensors.frame import Frame
from syncscope.tensors.instances import Bound, Instance
from syncscope.tensors.settling import Settling

NOTHING_KNOWN = UNKNOWN.kind


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
        if fact is not None:
            return fact
        method = each.methods.get(name)
        if method is not None:
            if "property" in method.decorators() or "cached_property" in method.decorators():
                return method.module.project.interpreter.run(method, (frame.depth if frame else 0) + 1)
            return Fact(OTHER, confidence=3, ref=Bound(method, owner))
        annotation = each.fields.get(name)
        if annotation is not None:
            fact = annotated(each.module, annotation, f"`{name}` is annotated as a tensor")
            if fact.kind is not NOTHING_KNOWN:
                return fact
        named = _named(each, name)
        if named is not None:
            return named
    return None


def _named(cls: Class, name: str) -> Fact | None:
    """What a class has under another name, of itself: `distribution_class = distributions.Normal`."""
    value = cls.named.get(name)
    return cls.module.project.interpreter.value(cls.module, value) if value is not None else None


def prepare(cls: Class) -> None:
    """See what `__init__` (and the first pass over the other set-up methods) sets on the object."""
    if cls.prepared:
        return
    cls.prepared = True
    with Settling(None, cls):
        for name in conventions.SET_UP:
            method = cls.methods.get(name)
            if method is not None:
                cls.module.project.interpreter.run(method, 1)


def set_attribute(owner: Fact, name: str, fact: Fact, frame: Frame) -> None:
    """Remember what is set on an object, joined with what was set before.

    Of a class of another file that is what the class itself sets up: what else is set depends on who was looked at before.
    """
    ref = owner.ref
    if isinstance(ref, Instance) and fact.kind is not NOTHING_KNOWN and not conventions.are_names(name):
        here = fact.kind is TENSOR and fact.device is HOST
        if owner.kind is MODULE:  # which leaves behind what is no buffer, where that was made and not given
            here = here and isinstance(fact.provenance, ast.Call)
        if fact.kind is TENSOR and fact.device is HOST and owner.kind is MODULE and fact.source is None:
            fact = fact.but(device=SOMEWHERE)  # given to `__init__`: people move it with the module
        elif fact.kind is MODULE and fact.device is HOST:
            fact = fact.but(device=SOMEWHERE)  # so with an object that holds a module
        if _sets_up(frame, ref.cls):
            kept = ref.cls.made_on_host
            kept.add(name) if here else kept.discard(name)
        elif not ref.cls.module.linted:
            return
        before = ref.cls.attributes.get(name)
        ref.cls.attributes[name] = fact if before is None else join(before, fact)


def _sets_up(frame: Frame, cls: Class) -> bool:
    """Whether a set-up method of this class is run here, whoever calls it and with what."""
    by = frame.function
    return by is not None and by.cls is cls and by.name in conventions.SET_UP and not frame.inlined
