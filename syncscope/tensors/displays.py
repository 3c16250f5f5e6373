"""Lists, tuples, sets and dicts that are written out, and comprehensions."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.tensors.bindings import bind
from syncscope.tensors.conditions import condition
from syncscope.tensors.facts import NUMBERS, SCALAR, SEQUENCE, TENSOR, Hashed, Items, items, listed, sequence
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.joins import element, join
from syncscope.tensors.narrowing import learnt
from syncscope.tensors.statements import iterated
from syncscope.tensors.usage import usage_of


def collection(frame: Frame, node: ast.Tuple | ast.List | ast.Set) -> Fact:
    """A tuple, list or set that is written out."""
    found = []
    starred = False
    for each in node.elts:
        if each.__class__ is ast.Starred:
            starred = True
            found.append(element(evaluate(frame, each.value)))
        else:
            found.append(frame.table[each.__class__](frame, each))
    if not found:
        return Fact(SEQUENCE, confidence=3)
    if starred or len(found) > 24 or node.__class__ is ast.Set:
        common = found[0]
        for other in found[1:]:
            common = join(common, other)
        if node.__class__ is ast.Set:
            return Fact(SEQUENCE, confidence=3, ref=Hashed(common))
        return items(common)
    if len(found) > 4 and all(f.kind is SCALAR for f in found):
        return NUMBERS
    return sequence(*found)


def dictionary(frame: Frame, node: ast.Dict) -> Fact:
    """A dict that is written out."""
    keys: dict[object, Fact] = {}
    each: Fact = UNKNOWN
    for key, value in zip(node.keys, node.values, strict=False):
        fact = frame.table[value.__class__](frame, value)
        if key is None:
            if isinstance(fact.ref, Items) and fact.ref.keys is not None:
                keys.update(fact.ref.keys)
        elif isinstance(key, ast.Constant):
            keys[key.value] = fact
        else:
            condition_free = evaluate(frame, key)
            if condition_free.kind is TENSOR:
                frame.emit(Op.INDEX, key, key, condition_free, 1)
            each = fact if each is UNKNOWN else join(each, fact)
    return Fact(SEQUENCE, confidence=3, ref=Items(each, keys))


def comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Fact:
    """A list, set or generator comprehension."""
    env = frame.env
    frame.env = dict(env)
    _generators(frame, node)
    each = evaluate(frame, node.elt)
    frame.env = env
    if node.__class__ is ast.ListComp:
        return listed(each)
    return (
        Fact(SEQUENCE, confidence=each.confidence, ref=Hashed(each)) if node.__class__ is ast.SetComp else items(each)
    )


def dict_comprehension(frame: Frame, node: ast.DictComp) -> Fact:
    """A dict comprehension."""
    env = frame.env
    frame.env = dict(env)
    _generators(frame, node)
    evaluate(frame, node.key)
    each = evaluate(frame, node.value)
    frame.env = env
    return items(each, {})


def _generators(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
    for generator in node.generators:
        each, _ = iterated(frame, generator.iter, evaluate(frame, generator.iter))
        used = frame.used
        if each.kind is UNKNOWN.kind and used.get(getattr(generator.target, "id", "")) == 2:
            # Its variables live in it alone: how the same name is used elsewhere says nothing of them.
            frame.used = usage_of(frame.module.parsed).between(node.lineno, node.end_lineno or node.lineno)
        bind(frame, generator.target, each)
        frame.used = used
        for test in generator.ifs:
            condition(frame, test)
            when, _ = learnt(frame, test)
            frame.env.update(when)
