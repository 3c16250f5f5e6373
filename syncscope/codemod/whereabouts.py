"""Which tensors the code itself says may live on the host, while others live on the device: they cannot be stacked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.devices import is_device
from syncscope.codemod.proofs import one_device
from syncscope.model.fact import Device, Value
from syncscope.project.syntax import last_word, statements
from syncscope.tensors.torch.signatures import FACTORIES

MOVES = {"to", "cuda", "cpu", "type_as"}
KEEPS = {"append", "add", "appendleft"}  # methods that put something into a collection


def apart(function: Function, tensors: Sequence[ast.expr]) -> bool:
    """Whether tensors may live on two devices for what the code says: one is made on the host, at least on some path."""
    return any(made_on_host(function, t) for t in tensors) and not one_device(function, tensors)


def wants_number(function: Function, outer: ast.AST, part: ast.AST) -> bool:
    """Whether a tensor of the host is computed with a part of an expression, or written by it: a number of Python's goes there,
    a tensor of the device does not, or is waited for.
    """
    match outer:
        case ast.Assign(targets=[ast.Subscript(value=whole)], value=value) if value is part:
            return function.fact(whole).kind is Value.ARRAY or made_on_host(function, whole)
        case ast.AugAssign(target=target) if part is not target:
            return made_on_host(function, target)
        case ast.BinOp(left=left, right=right):
            beside = [left, right]
        case ast.Compare(left=left, comparators=others):
            beside = [left, *others]
        case ast.Call(func=ast.Attribute(value=whole), args=args, keywords=keywords) if whole is not part:
            beside = [whole, *args, *(k.value for k in keywords)]
        case _:
            return False
    return any(made_on_host(function, b) and function.fact(b).ndim != 0 for b in beside if b is not part)


def made_on_host(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is made on the host, on some path at least: `torch.tensor(0.0)` where another branch computes it."""
    return Hosted.of(function).made(function, tensor)


class Hosted:
    """What the names of a function hold that is made on the host: each is gone through once, though it is made of others.

    It is kept by the function, and so holds no way back: a circle would leave every tree to the garbage collector.
    """

    @classmethod
    def of(cls, function: Function) -> Hosted:
        """The one of a function."""
        return function.once("made on the host", function.scope, cls)

    def __init__(self) -> None:
        self.known: dict[ast.Assign | str, bool] = {}
        self.path: set[str] = set()  # names that are being asked for: one that is made of itself ends there
        self.met: set[str] = set()  # of these, what the answer at hand has come to
        self.open: dict[ast.Assign | str, set[str]] = {}  # "no" for as long as these names are being asked for

    def made(self, function: Function, tensor: ast.expr) -> bool:
        """As `made_on_host`."""
        fact = function.fact(tensor)
        if fact.is_tensor and fact.device in (Device.HOST, Device.DEFAULT):
            return True
        match tensor:
            case ast.Name():
                return self.named(function, tensor)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return any(is_host_factory(function, v) for v in attributes(function, name))
            case ast.Subscript(value=whole):
                return self.made(function, whole)
            case ast.IfExp(body=body, orelse=other):
                return self.made(function, body) or self.made(function, other)
            case ast.UnaryOp(operand=operand):
                return self.made(function, operand)
            case ast.BinOp(left=left, right=right):  # what lives on the device takes the other there
                parts = [p for p in (left, right) if function.constant(p) is None]
                return bool(parts) and all(self.made(function, p) for p in parts)
            case ast.Compare(left=left, comparators=[right]):
                parts = [p for p in (left, right) if function.constant(p) is None]
                return bool(parts) and all(self.made(function, p) for p in parts)
            case ast.Call():
                if is_host_factory(function, tensor):
                    return True
                op = function.op(tensor)
                others = [*op.args, *op.keywords.values()] if op is not None else []
                if op is None or op.name in MOVES or any(function.fact(o).is_tensor for o in others):
                    return False
                return not isinstance(op.base, ast.Attribute) and self.made(function, op.base)
        return False

    def named(self, function: Function, name: ast.Name) -> bool:
        """Whether a name holds such a tensor: what it surely was given last, else any of what it is given."""
        last = function.reaching_definition(name)
        key = name.id if last is None else last
        if name.id in self.path:
            self.met.add(name.id)
            return False
        if key in self.known:
            return self.known[key]
        if key in self.open:
            self.met |= self.open[key]
            return False
        before, self.met = self.met, set()
        self.path.add(name.id)
        values = [last.value] if last is not None else given(function, name.id)
        found = any(self.made(function, value) for value in values)
        self.path.discard(name.id)
        if name.id in self.met:
            self.met.discard(name.id)
            self.open.clear()
        if found or not self.met:
            self.known[key] = found
        else:
            self.open[key] = set(self.met)
        self.met |= before
        return found


def is_host_factory(function: Function, value: ast.expr) -> bool:
    """Whether this makes a tensor and names no device: `torch.zeros(1)`."""
    if not isinstance(value, ast.Call) or any(k.arg in ("device", None) for k in value.keywords):
        return False
    head, _, word = (function.dotted(value.func) or "").rpartition(".")
    if head != "torch" or word not in FACTORIES:
        return False
    return word not in ("as_tensor", "asarray") or not any(function.fact(a).on_device for a in value.args)


def gathered_on_host(function: Function, collection: ast.expr) -> bool:
    """Whether what a list or a dict of this function holds is made on the host, on some path at least."""
    if not isinstance(collection, ast.Name):
        return False
    parts: list[ast.expr] = []
    for value in given(function, collection.id):
        parts += value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
        parts += [value.elt] if isinstance(value, (ast.ListComp, ast.GeneratorExp)) else []
    for use in function.reads(collection.id):
        outer = function.parent(use)
        match outer, function.parent(outer) if outer is not None else None:
            case ast.Attribute(attr=method), ast.Call(args=[one]) if method in KEEPS:
                parts.append(one)
            case ast.Subscript(ctx=ast.Store()), ast.Assign(value=one):
                parts.append(one)
    return any(made_on_host(function, part) for part in parts)


def cannot_be_joined(function: Function, collection: ast.expr) -> bool:
    """Whether what a collection holds may live on several devices: some is of the host, or there is one for each device."""
    return gathered_on_host(function, collection) or one_for_each_device(function, collection)


_OF_DEVICES = re.compile(r"(^|_)((per|by|each|all)_(device|gpu|rank)s?|devices|gpus|replicas)(_|$)")


def one_for_each_device(function: Function, collection: ast.expr) -> bool:
    """Whether a collection holds a tensor for each device, by what it is called, is annotated as, or has for keys."""
    parts = [n for n in ast.walk(collection) if isinstance(n, (ast.Name, ast.Attribute))]
    if any(_OF_DEVICES.search(last_word(n)) for n in parts):
        return True
    return any(isinstance(n, ast.Name) and _has_devices_for_keys(function, n.id) for n in parts)


def _has_devices_for_keys(function: Function, name: str) -> bool:
    keys: list[ast.expr | None] = []
    for value in given(function, name):
        keys += value.keys if isinstance(value, ast.Dict) else [value.key] if isinstance(value, ast.DictComp) else []
    for use in function.reads(name):
        outer = function.parent(use)
        match outer, function.parent(outer) if outer is not None else None:
            case ast.Subscript(value=whole, slice=key), _ if whole is use:
                keys.append(key)
            case ast.Attribute(attr="get" | "setdefault"), ast.Call(args=[key, *_]):
                keys.append(key)
            case ast.Attribute(attr="items"), ast.Call() as items:
                match function.parent(items):
                    case ast.comprehension(target=ast.Tuple(elts=[key, _])) | ast.For(target=ast.Tuple(elts=[key, _])):
                        keys.append(key)
    if any(key is not None and is_device(last_word(key)) for key in keys):
        return True
    return any(_said_of_devices(annotation) for annotation in _annotations(function, name))


def _annotations(function: Function, name: str) -> Iterator[ast.expr]:
    """What is annotated of a name: as a parameter, or where it is given a value."""
    for bound in function.binds(name):
        outer = bound if isinstance(bound, ast.arg) else function.parent(bound)
        if isinstance(outer, (ast.arg, ast.AnnAssign)) and outer.annotation is not None:
            yield outer.annotation
    if isinstance(function.scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        a = function.scope.args
        yield from (
            each.annotation
            for each in (*a.posonlyargs, *a.args, *a.kwonlyargs)
            if each.arg == name and each.annotation is not None
        )


def _said_of_devices(annotation: ast.expr) -> bool:
    """`dict[torch.device, Tensor]`."""
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=[key, *_])):
            return last_word(key) == "device"
    return False


def given(function: Function, name: str) -> Iterator[ast.expr]:
    """The values that a function gives a name, whichever of them it holds in the end."""
    for bound in function.binds(name):
        match function.parent(bound):
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
                yield value
            case ast.Tuple() as side:
                match function.parent(side):
                    case ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(side.elts):
                        yield values[side.elts.index(bound)]


def attributes(function: Function, name: str) -> Sequence[ast.expr]:
    """The values that the class around gives one of its attributes."""
    cls = function.file.class_around(function.scope)
    if cls is None:
        return []
    return function.file.once(f"attributes of {cls.name} of line {cls.lineno}", lambda: _given(cls)).get(name, [])


def _given(cls: ast.ClassDef) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for statement in statements(cls):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, []).append(statement.value)
    return found
