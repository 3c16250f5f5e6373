"""Python's own functions: what each gives, and what it asks of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import bases, named
from syncscope.project.syntax import name_of
from syncscope.tensors.attributes import attribute
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    BOOL,
    DEVICE,
    DISTRIBUTIONS,
    FLOATING,
    HOST,
    INT,
    INTEGER,
    LOADER,
    NOTHING_KNOWN,
    NUMBER,
    SCALAR,
    SEQUENCE,
    STRING,
    TENSOR,
    THING,
    TRUTH,
    Items,
    Listed,
    holds_tensor,
    items,
    listed,
    sequence,
)
from syncscope.tensors.frame import evaluate
from syncscope.tensors.function_calls import call_function
from syncscope.tensors.instances import Instance, instance
from syncscope.tensors.joins import element, iterated_over
from syncscope.tensors.loaders import loader_of

Builtin = Callable[[Call], Fact]


def _read(op: Op, result: Fact) -> Builtin:
    def run(call: Call) -> Fact:
        if call.first.kind is TENSOR:
            call.emit(op, call.first_node, call.first)
            call.frame.work = False
        return result

    return run


def _format(call: Call) -> Fact:
    for at, fact in zip(call.nodes, call.args, strict=False):
        held = holds_tensor(fact)
        if held is not None and not isinstance(at, ast.Starred):
            call.emit(Op.FORMAT, at, held, 3 if fact.kind is TENSOR else 2)
            break
    return STRING


def _extreme(call: Call) -> Fact:
    """min and max compare two values at a time: over tensors each comparison is read."""
    if len(call.args) == 1:
        fact = call.first
        if fact.kind is TENSOR and "key" not in call.keywords:
            call.emit(Op.BUILTIN, call.first_node, fact)
            return element(fact)
        _compares_elements(call, fact, 2)
        return element(fact)
    if "key" not in call.keywords:
        for at, held in call.tensors():
            call.emit(Op.BUILTIN, at, held)
            return call.result(held, ndim=0, confidence=min(held.confidence, 2))
    return NUMBER if all(a.kind is SCALAR for a in call.args) else UNKNOWN


def _given(call: Call, function: Fact, each: Fact) -> Fact:
    """What a lambda gives for an element."""
    node, frame = function.ref, call.frame
    if not isinstance(node, ast.Lambda) or len(node.args.args) != 1 or each.kind is NOTHING_KNOWN:
        return UNKNOWN
    env, frame.env = frame.env, {**frame.env, node.args.args[0].arg: each}
    given = evaluate(frame, node.body)
    frame.env = env
    return given


def _compares_elements(call: Call, fact: Fact, confidence: int = 3) -> None:
    key = call.keywords.get("key")
    ordered = _given(call, key, element(fact)) if key is not None else UNKNOWN
    if ordered.kind is TENSOR:
        call.emit(Op.BUILTIN, call.node_of(len(call.nodes), "key"), ordered, confidence)
    held = _over(fact)
    if held is not None and "key" not in call.keywords:
        call.emit(Op.BUILTIN, call.first_node, held, confidence)


def _truth(call: Call) -> Fact:
    """any and all ask each element for its truth."""
    held = call.first if call.first.kind is TENSOR else _over(call.first)
    if held is not None:
        call.emit(Op.BUILTIN, call.first_node, held)
    return TRUTH


def _sum(call: Call) -> Fact:
    """sum adds on the device: nothing is read, but a loop over a tensor is one kernel an element."""
    each = iterated_over(call.first)
    if each.kind is TENSOR:
        return call.result(each, dtype=INT if each.dtype is BOOL else None)
    return NUMBER if each.kind is SCALAR else UNKNOWN


def _over(fact: Fact) -> Fact | None:
    """The tensor that iterating over a value meets."""
    each = iterated_over(fact)
    return each if each.kind is TENSOR else None


def _sorted(call: Call) -> Fact:
    if not call.args:
        return UNKNOWN
    fact, made = call.first, call.first.provenance
    sure = fact.kind is not TENSOR or fact.confidence == 3  # a dict is sorted more often than a tensor
    sure = sure or (isinstance(made, ast.Call) and name_of(made.func) in ("to", "cuda"))
    _compares_elements(call, fact, 3 if sure else 1)
    return fact if fact.kind is SEQUENCE else items(element(fact))


def _range(call: Call) -> Fact:
    for at, fact in call.tensors():
        call.emit(Op.INDEX, at, fact)
    return listed(INTEGER)


_OF_POSITIONS = frozenset("product permutations combinations combinations_with_replacement".split())
"""Functions of itertools, whose tuples are of positions more often than of names, where they index a tensor."""


def _same_elements(call: Call) -> Fact:
    if not call.args:
        return Fact(SEQUENCE, confidence=3)
    fact = call.first
    if fact.kind is SEQUENCE and call.word == "list" and fact.ref.__class__ is Items and element(fact).kind is SCALAR:
        return listed(element(fact))
    if fact.kind is SEQUENCE or fact.ref == LOADER:
        return items(element(fact)) if call.word == "tuple" and isinstance(fact.ref, Listed) else fact
    if fact.kind in (TENSOR, BATCH):
        return items(element(fact))
    if fact.kind is not NOTHING_KNOWN:
        return UNKNOWN
    each = _batch_of(name_of(call.nodes[0]))
    if each is None and call.word == "list" and name_of(getattr(call.nodes[0], "func", None)) in _OF_POSITIONS:
        return listed(UNKNOWN)
    return items(each) if each is not None else UNKNOWN


def _enumerate(call: Call) -> Fact:
    if not call.args:
        return UNKNOWN
    each = _each(call.first)
    if each.kind is NOTHING_KNOWN:
        each = _batch_of(loader_of(call.frame, call.nodes[0])) or each
    return items(sequence(INTEGER, each))


def _batch_of(word: str) -> Fact | None:
    """What is given one by one of what people call a loader, or an iterator over one."""
    return Fact(BATCH, confidence=1, why=f"a batch of `{word}`") if conventions.is_loader(word) else None


def _next(call: Call) -> Fact:
    each = _each(call.first)
    if each.kind is NOTHING_KNOWN and call.nodes:
        each = _batch_of(loader_of(call.frame, call.nodes[0])) or each
    return each


def _each(fact: Fact) -> Fact:
    """What iterating gives, also over a loader."""
    if fact.ref == LOADER:
        where = DEVICE if fact.device is DEVICE else HOST
        return Fact(BATCH, device=where, confidence=2, why="a batch of a DataLoader")
    return element(fact)


def _zip(call: Call) -> Fact:
    if call.starred:
        return UNKNOWN
    each = [_each(fact) for fact in call.args]
    for at, node in enumerate(call.nodes):
        if each[at].kind is NOTHING_KNOWN:
            each[at] = _batch_of(loader_of(call.frame, node)) or each[at]
    return items(sequence(*each))


def _getattr(call: Call) -> Fact:
    name = call.nodes[1] if len(call.nodes) >= 2 else None
    if isinstance(name, ast.Constant) and isinstance(call.first.ref, Instance):
        return attribute(call.first, str(name.value), call.frame) or UNKNOWN
    return UNKNOWN


_NUMBERS = ("int", "float", "bool")
_CONVERTED = {"int": Op.INT, "float": Op.FLOAT, "bool": Op.BOOL, "str": Op.FORMAT}


def _map(call: Call) -> Fact:
    if len(call.args) < 2:
        return UNKNOWN
    ref = call.first.ref
    if isinstance(ref, str) and len(call.args) == 2:
        each = element(call.args[1])
        word = ref.removeprefix("builtins.")
        if word in _CONVERTED and each.kind is TENSOR:
            call.emit(_CONVERTED[word], call.nodes[1], each)
        if word in _NUMBERS:
            return items(NUMBER)
        if not isinstance(call.nodes[1], (ast.Tuple, ast.List)):
            return UNKNOWN
        return sequence(*(_one_of(call, part) for part in call.nodes[1].elts))
    if isinstance(ref, ProjectFunction):
        return items(call_function(ref, call.frame, [element(a) for a in call.args[1:]], {}))
    given = _given(call, call.first, element(call.args[1])) if len(call.args) == 2 else UNKNOWN
    return UNKNOWN if given.kind is NOTHING_KNOWN else items(given)


def _one_of(call: Call, part: ast.expr) -> Fact:
    """What a function gives for one of the values that are written out for it: `torch.stack` for `rows` of `(rows, columns)`.
    Nobody sees the call, so that no wait of it is told."""
    frame, waits = call.frame, call.frame.waits
    frame.waits = None
    given = evaluate(frame, ast.copy_location(ast.Call(call.nodes[0], [part], []), part))
    frame.waits = waits
    return given


def _filter(call: Call) -> Fact:
    """What is kept is asked for: `filter(lambda x: x.sum() > 0, rows)`."""
    if len(call.args) != 2:
        return UNKNOWN
    each = element(call.args[1])
    asked = _given(call, call.first, each)
    if asked.kind is TENSOR and isinstance(call.first.ref, ast.Lambda):
        call.frame.emit(Op.CONDITION, call.first.ref.body, call.first.ref.body, asked)
    return UNKNOWN if each.kind is NOTHING_KNOWN else items(each)


def _super(call: Call) -> Fact:
    cls = call.frame.cls
    for base in bases(cls) if cls is not None else ():
        if isinstance(base.ref, Class):
            return instance(base.ref)
        if isinstance(base.ref, str) and base.ref.startswith(DISTRIBUTIONS):
            return named(f"{base.ref}()")
    return UNKNOWN


def _dict(call: Call) -> Fact:
    if call.args:
        return call.first if call.first.kind is SEQUENCE else UNKNOWN
    return Fact(SEQUENCE, confidence=3, ref=Items(UNKNOWN, {k: v for k, v in call.keywords.items() if k is not None}))


def _first_if(*kinds: object, otherwise: Fact = UNKNOWN) -> Builtin:
    """The argument itself, where it is one of these."""
    return lambda call: call.first if call.first.kind in kinds else otherwise


def _divmod(call: Call) -> Fact:
    return sequence(call.first, call.first) if call.first.kind in (TENSOR, SCALAR) else UNKNOWN


BUILTINS: dict[str, Builtin] = {
    "float": _read(Op.FLOAT, FLOATING),
    "int": _read(Op.INT, INTEGER),
    "bool": _read(Op.BOOL, TRUTH),
    "complex": _read(Op.COMPLEX, NUMBER),
    **dict.fromkeys(("print", "str", "repr", "format"), _format),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("any", "all"), _truth),
    "sum": _sum,
    "sorted": _sorted,
    "round": _first_if(TENSOR, otherwise=NUMBER),
    "abs": _first_if(TENSOR, ARRAY, SCALAR),
    "divmod": _divmod,
    "range": _range,
    **dict.fromkeys(("list", "tuple", "iter", "reversed"), _same_elements),
    "dict": _dict,
    "next": _next,
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "getattr": _getattr,
    "super": _super,
    **dict.fromkeys(("isinstance", "hasattr", "callable", "issubclass"), lambda _: TRUTH),
    **dict.fromkeys(("len", "id", "hash"), lambda _: INTEGER),
    **dict.fromkeys(("set", "slice", "type", "open", "bytes", "bytearray", "memoryview"), lambda _: THING),
}


def call(call: Call) -> Fact:
    """A function of Python's own."""
    handler = BUILTINS.get(call.name.removeprefix("builtins."))
    return handler(call) if handler is not None else UNKNOWN
