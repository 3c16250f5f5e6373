"""Methods of lists, dicts and strings whose contents are known."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project.syntax import dotted
from syncscope.tensors.attributes import set_attribute
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    INTEGER,
    NONE,
    NOTHING_KNOWN,
    STRING,
    TENSOR,
    Items,
    Tag,
    items,
    listed,
    sequence,
)
from syncscope.tensors.frame import evaluate
from syncscope.tensors.instances import Instance
from syncscope.tensors.joins import each_value, element, join


def string_method(call: Call) -> Fact:
    """`"...".format(tensor)`."""
    if call.word == "format":
        named = ((k.value, call.keywords[k.arg]) for k in call.node.keywords)
        for at, fact in (*call.tensors(), *named):
            if fact.kind is TENSOR:
                call.emit(Op.FORMAT, at, fact)
                break
    return STRING if call.word in ("format", "join", "strip", "lower", "upper", "replace") else UNKNOWN


def container_method(call: Call) -> Fact:
    """Methods of lists and dicts."""
    word, owner = call.word, call.receiver
    if word in ("append", "add", "appendleft", "extend", "insert") and call.args:
        _grown(call)
        return NONE
    if word == "items":
        return items(sequence(UNKNOWN, each_value(owner)))
    if word == "values":
        return items(each_value(owner))
    if word in ("get", "pop", "setdefault", "popleft", "next", "__next__"):
        ref, key = owner.ref, call.first_node
        if isinstance(key, ast.Constant) and isinstance(ref, Items) and ref.keys is not None:
            found = ref.keys.get(key.value)
            if found is not None:
                return found
        return element(owner)
    if word == "copy":
        return owner
    return INTEGER if word in ("index", "count") or (word == "numel" and owner.ref is Tag.SIZE) else UNKNOWN


def _grown(call: Call) -> None:
    """What a container holds once something was put into it."""
    new = element(call.args[-1]) if call.word == "extend" else call.args[-1]
    if new.kind is NOTHING_KNOWN:
        return
    each = element(call.receiver)
    of_list = call.word in ("append", "extend", "insert")  # a set has `add`, a deque is no index
    both = (listed if of_list else items)(new if each is UNKNOWN else join(each, new))
    at = call.at
    path = dotted(at) if at is not None else ""
    if path:
        call.frame.env[path] = both
    if isinstance(at, ast.Attribute):
        holder = evaluate(call.frame, at.value)
        if isinstance(holder.ref, Instance):
            set_attribute(holder, at.attr, both, call.frame)
