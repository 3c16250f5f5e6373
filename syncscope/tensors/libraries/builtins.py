"""Calls of Python builtins and of numpy."""

from __future__ import annotations

import ast
from collections.abc import Callable

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors import hotness
from syncscope.tensors.attributes import attribute
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    BOOL,
    DEVICE,
    FLOATING,
    HOST,
    INT,
    INTEGER,
    NP_ARRAY,
    NUMBER,
    SCALAR,
    SEQUENCE,
    STRING,
    TENSOR,
    THING,
    TRUTH,
    Items,
    array,
    element,
    items,
    iterated_over,
    sequence,
)
from syncscope.tensors.frame import Frame, holds_tensor, on_host_here
from syncscope.tensors.functions import call as call_function
from syncscope.tensors.project import Class, Function
from syncscope.tensors.scope import Instance, instance

NOTHING_KNOWN = UNKNOWN.kind
Keywords = dict[str | None, Fact]


Builtin = Callable[[Frame, ast.Call, list[Fact], Keywords], Fact]


def _b_read(op: str, result: Fact) -> Builtin:
    def run(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
        if args and args[0].kind is TENSOR:
            frame.emit(op, node, node.args[0], args[0])
            frame.work = False
        return result

    return run


def _b_format(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    for position, fact in enumerate(args):
        held = fact if fact.kind is TENSOR else holds_tensor(fact)
        if held is not None and not isinstance(node.args[position], ast.Starred):
            frame.emit("format", node, node.args[position], held, 3 if fact.kind is TENSOR else 2)
            break
    return STRING


def _b_extreme(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """min and max compare two values at a time: over tensors each comparison is read."""
    word = node.func.id if isinstance(node.func, ast.Name) else "max"
    if len(args) == 1:
        fact = args[0]
        if fact.kind is TENSOR:
            frame.emit("builtin", node, node.args[0], fact)
            return element(fact)
        held = _over(fact)
        if held is not None and "key" not in keywords:
            frame.emit("builtin", node, node.args[0], held, 2)
        return element(fact)
    held = next((a for a in args if a.kind is TENSOR), None)
    if held is not None and "key" not in keywords:
        frame.emit("builtin", node, node.args[args.index(held)], held)
        return Fact(TENSOR, held.dtype, held.device, held.shape, 0, min(held.confidence, 2), node, source=held)
    del word
    return NUMBER if all(a.kind is SCALAR for a in args) else UNKNOWN


def _b_truth(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """any and all ask each element for its truth."""
    if args:
        fact = args[0]
        held = fact if fact.kind is TENSOR else _over(fact)
        if held is not None:
            frame.emit("builtin", node, node.args[0], held)
    return TRUTH


def _b_sum(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    """sum adds on the device: nothing is read, but a loop over a tensor is one kernel an element."""
    if args:
        each = iterated_over(args[0])
        if each.kind is TENSOR:
            return Fact(
                TENSOR,
                each.dtype if each.dtype is not BOOL else INT,
                each.device,
                each.shape,
                each.ndim,
                each.confidence,
                node,
                source=each,
            )
        if each.kind is SCALAR:
            return NUMBER
    return UNKNOWN


def _over(fact: Fact) -> Fact | None:
    """The tensor that iterating over a value meets."""
    each = iterated_over(fact)
    return each if each.kind is TENSOR else None


def _b_sorted(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if args:
        held = _over(args[0])
        if held is not None and "key" not in keywords:
            frame.emit("builtin", node, node.args[0], held)
        return args[0] if args[0].kind is SEQUENCE else items(element(args[0]))
    return UNKNOWN


def _b_round(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return args[0] if args and args[0].kind is TENSOR else NUMBER


def _b_range(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    for position, fact in enumerate(args):
        if fact.kind is TENSOR:
            frame.emit("index", node, node.args[position], fact)
    return items(INTEGER)


def _b_length(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return INTEGER


def _b_same(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if not args:
        return Fact(SEQUENCE, confidence=3)
    fact = args[0]
    if fact.kind is SEQUENCE:
        return fact
    return (
        items(element(fact))
        if fact.kind in (TENSOR, BATCH)
        else fact
        if fact.ref == "torch.utils.data.DataLoader()"
        else UNKNOWN
    )


def _b_enumerate(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if not args:
        return UNKNOWN
    each = each_of(node.args[0], args[0])
    return items(sequence((INTEGER, each))) if each.kind is not NOTHING_KNOWN else _loaderlike(node.args[0])


def each_of(node: ast.expr, fact: Fact) -> Fact:
    """What iterating gives, also over a loader."""
    if fact.ref == "torch.utils.data.DataLoader()":
        return Fact(BATCH, device=HOST, confidence=2, why="a batch of a DataLoader")
    return element(fact)


def _loaderlike(node: ast.expr) -> Fact:
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if hotness.is_loader(word):
        return items(sequence((INTEGER, Fact(BATCH, confidence=1, why=f"a batch of `{word}`"))))
    return items(sequence((INTEGER, UNKNOWN)))


def _b_zip(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if any(isinstance(a, ast.Starred) for a in node.args):
        return UNKNOWN
    return items(sequence(tuple(each_of(at, fact) for at, fact in zip(node.args, args, strict=False))))


def _b_abs(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return args[0] if args and args[0].kind in (TENSOR, ARRAY, SCALAR) else UNKNOWN


def _b_isinstance(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return TRUTH


def _b_getattr(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if len(node.args) >= 2 and isinstance(node.args[1], ast.Constant) and isinstance(args[0].ref, Instance):
        return attribute(args[0], str(node.args[1].value), frame) or UNKNOWN
    return UNKNOWN


def _b_map(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    if len(args) == 2 and isinstance(args[0].ref, str):
        each = element(args[1])
        word = args[0].ref.removeprefix("builtins.")
        if word in ("int", "float", "bool", "str") and each.kind is TENSOR:
            frame.emit(word if word != "str" else "format", node, node.args[1], each)
        if word in ("int", "float", "bool"):
            return items(NUMBER)
    if args and isinstance(args[0].ref, Function) and len(args) > 1:
        return items(call_function(args[0].ref, frame, [element(a) for a in args[1:]], {}))
    return UNKNOWN


def _b_super(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    cls = frame.cls
    if cls is not None:
        from syncscope.tensors.scope import bases

        for base in bases(cls):
            if isinstance(base.ref, Class):
                return instance(base.ref)
    return UNKNOWN


def _b_divmod(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return sequence((args[0], args[0])) if args and args[0].kind in (TENSOR, SCALAR) else UNKNOWN


def _b_slice(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords) -> Fact:
    return THING


BUILTINS: dict[str, Builtin] = {
    "float": _b_read("float", FLOATING),
    "int": _b_read("int", INTEGER),
    "bool": _b_read("bool", TRUTH),
    "complex": _b_read("complex", NUMBER),
    "print": _b_format,
    "str": _b_format,
    "repr": _b_format,
    "format": _b_format,
    "min": _b_extreme,
    "max": _b_extreme,
    "any": _b_truth,
    "all": _b_truth,
    "sum": _b_sum,
    "sorted": _b_sorted,
    "round": _b_round,
    "range": _b_range,
    "len": _b_length,
    "list": _b_same,
    "tuple": _b_same,
    "iter": _b_same,
    "reversed": _b_same,
    "set": lambda *_: THING,
    "enumerate": _b_enumerate,
    "zip": _b_zip,
    "abs": _b_abs,
    "isinstance": _b_isinstance,
    "hasattr": _b_isinstance,
    "callable": _b_isinstance,
    "issubclass": _b_isinstance,
    "getattr": _b_getattr,
    "map": _b_map,
    "super": _b_super,
    "divmod": _b_divmod,
    "slice": _b_slice,
    "dict": lambda frame, node, args, keywords: (
        Fact(SEQUENCE, confidence=3, ref=Items(UNKNOWN, {k: v for k, v in keywords.items() if k is not None}))
        if not args
        else args[0]
        if args[0].kind is SEQUENCE
        else UNKNOWN
    ),
    "next": lambda frame, node, args, keywords: each_of(node.args[0], args[0]) if args else UNKNOWN,
    "id": _b_length,
    "hash": _b_length,
    "type": lambda *_: THING,
    "open": lambda *_: THING,
}


_NOT_ARRAYS = {
    "isscalar",
    "ndim",
    "shape",
    "random.seed",
    "random.default_rng",
    "errstate",
    "dtype",
    "finfo",
    "iinfo",
    "set_printoptions",
}


def numpy_call(frame: Frame, node: ast.Call, rest: str, args: list[Fact], keywords: Keywords) -> Fact:
    """numpy of a tensor copies it to the host."""
    held = next((a for a in args if holds_tensor(a) is not None), None)
    if held is not None and rest not in _NOT_ARRAYS:
        tensor_ = holds_tensor(held)
        assert tensor_ is not None
        at = node.args[args.index(held)]
        if tensor_.device is DEVICE:
            frame.emit("asarray", node, at, tensor_)
        else:
            on_host_here(frame, at, held)
        return array(tensor_)
    if rest in _NOT_ARRAYS:
        return THING
    if rest in ("prod", "isscalar", "ndim", "log2", "ceil", "floor", "sqrt") and args and args[0].kind is SCALAR:
        return NUMBER
    return NP_ARRAY
