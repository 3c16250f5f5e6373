"""What callers pass to a function, remembered with it."""

from __future__ import annotations

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project.modules import ProjectFunction
from syncscope.tensors.call import Keywords
from syncscope.tensors.facts import MODULE, NONE, SCALAR, SEQUENCE, TENSOR, Tag
from syncscope.tensors.frame import Frame
from syncscope.tensors.instances import is_module
from syncscope.tensors.joins import join

DEVICE = Tag.DEVICE


def is_test(caller: ProjectFunction | None) -> bool:
    """Whether this is a test that stands beside what it tests; `test_epoch(net, loader)` evaluates, and takes arguments."""
    return caller is not None and caller.cls is None and caller.name.startswith("test_") and not caller.names


def tries_out(frame: Frame, function: ProjectFunction) -> bool:
    """Whether a function is called by a test of it, or to show what a network does, at the end of a file that trains none:
    what is made for that lies on the host, and a step passes what it has."""
    caller = frame.function
    if is_test(caller):
        return True
    if function.cls is None or not is_module(function.cls) or b".backward(" in frame.module.source:
        return False
    return caller is None or (caller.cls is None and not caller.names)


def note(function: ProjectFunction, given: dict[str, Fact]) -> bool:
    """Remember what callers pass; whether that says more than was known before."""
    news = False
    for name, fact in given.items():
        if fact.kind is UNKNOWN.kind or fact is NONE:
            continue
        before = function.passed.get(name)
        if before is None:
            function.passed[name] = fact
            guessed = function.bound.get(name, UNKNOWN)
            news = news or fact.kind in (TENSOR, SEQUENCE, MODULE) or (fact.ref is DEVICE and name in function.left_out)
            news = news or (fact.kind is SCALAR and guessed.kind is TENSOR and guessed.confidence == 1)
        elif before is not fact and before != fact:
            both = join(before, fact)
            if (
                both.kind is TENSOR
                and before.kind is fact.kind
                and both.confidence < max(before.confidence, fact.confidence)
            ):
                # a tensor for one caller is one for all
                both = both.but(confidence=max(before.confidence, fact.confidence))
            if both != before:
                function.passed[name] = both
                news = news or both.kind is TENSOR
    return news


def note_built(init: ProjectFunction, frame: Frame, args: list[Fact], keywords: Keywords) -> None:
    """Remember what tensors, lists and networks an object of a class of the file at hand is built with: it may keep them."""
    if init.module is not frame.module or not init.module.linted or tries_out(frame, init):
        return
    given = [*zip(init.names[1:], args, strict=False), *keywords.items()]
    if note(init, {name: fact for name, fact in given if name is not None and fact.kind in (TENSOR, SEQUENCE, MODULE)}):
        init.news = True
        frame.module.functions.append(init)
