"""Calls: who is called, with what; each is sent to who knows what it gives."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Reason
from syncscope.project import conventions
from syncscope.project.devices import is_network
from syncscope.project.syntax import dotted
from syncscope.tensors.call import Call, Keywords
from syncscope.tensors.called import apply
from syncscope.tensors.facts import (
    NOTHING_KNOWN,
    TENSOR,
)
from syncscope.tensors.frame import Frame
from syncscope.tensors.libraries import transformers
from syncscope.tensors.member_calls import call_member
from syncscope.tensors.methods_of_unknown import (
    OF_DICTS,
    TELLING,
    asked_as_a_dict,
    by_its_owner,
    given_by_network,
    in_its_place,
)


def call(frame: Frame, node: ast.Call) -> Fact:
    """What a call gives, and the waits that it makes."""
    batch = transformers.prepared(node) if node.keywords else None
    if batch is not None:
        _arguments(frame, node)
        return batch
    func = node.func
    if isinstance(func, ast.Attribute):
        receiver = frame.table[func.value.__class__](frame, func.value)
        word = func.attr
        if word in conventions.WARNINGS:
            before, frame.around = frame.around, Reason.WARNS()
            args, keywords = _arguments(frame, node)
            frame.around = before
        else:
            args, keywords = _arguments(frame, node)
        if receiver.kind is NOTHING_KNOWN and word not in TELLING:  # most methods of a file
            held = frame.env.get(dotted(func))
            if held is None or held.kind is NOTHING_KNOWN:
                given = by_its_owner(word, func.value)
                if given is UNKNOWN:
                    return given_by_network(node) if is_network(word) else in_its_place(word, args)
                return given
        if word in OF_DICTS and receiver.kind is TENSOR and (part := asked_as_a_dict(word, func.value, receiver)):
            return part
        found = call_member(Call(frame, node, word, args, keywords, receiver, func.value))
        return in_its_place(word, args) if found is UNKNOWN else found
    target = frame.table[func.__class__](frame, func)
    args, keywords = _arguments(frame, node)
    return apply(Call(frame, node, "", args, keywords), target)


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[Fact], Keywords]:
    """The facts of positional and keyword arguments."""
    table = frame.table
    args = [table[a.__class__](frame, a) for a in node.args]
    return args, {k.arg: table[k.value.__class__](frame, k.value) for k in node.keywords} if node.keywords else {}
