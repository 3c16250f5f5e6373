"""Helpers that send a batch to the device part by part: what they are given is what a loader made, on the host.

They are known by what they do. One goes over what it is given, or over what it unpacks of that, and sends each part to the
same place; or it calls itself for each part of what is a list or a dict, and sends what is a tensor.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from syncscope.project import devices
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import dotted, name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.instances import is_module

_SEVERAL = 2  # parts that are sent one by one, each in words of its own
_SENDERS = frozenset(("to", "cuda", "to_device"))
_VIEWS = frozenset(("items", "values", "keys"))


def sends_a_part(call: Call) -> bool:
    """Whether a call `x.to(device)` sends a part of what its function is given, and which that function takes apart."""
    function = call.frame.function
    return function is not None and id(call.node) in _sent(function)


def replaces_itself(call: Call) -> bool:
    """Whether a call sends an entry of a dict, which takes its place: `state["x"] = state["x"].to(device)`, of a trainer."""
    function = call.frame.function
    if function is None or call.at.__class__ is not ast.Subscript or (function.cls and is_module(function.cls)):
        return False
    return id(call.node) in _in_place(function)


@kept(8)
def _in_place(function: ProjectFunction) -> frozenset[int]:
    """The calls that send what is then put where it was, to a device that no tensor says."""
    every = walk(function.node)
    beside = devices_of_tensors(every)
    found = []
    for each in every:
        match each:
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value=str()) | ast.Attribute()) as target],
                value=ast.Call(func=ast.Attribute(value=ast.Subscript() as source)) as call,
            ) if not devices.is_model(entry_named(target.slice).lower()) and ast.unparse(target) == ast.unparse(source):
                if to_a_device(call, function, beside):
                    found.append(id(call))
    return frozenset(found)


@kept(MANY)
def filled_anew(function: ProjectFunction) -> frozenset[str]:
    """The arguments of which a function sends each entry, which takes its place: `batch[key] = batch[key].to(device)`."""
    every = walk(function.node)
    beside = devices_of_tensors(every)
    found = set()
    for each in every:
        match each:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=key)],
                value=ast.Call(func=ast.Attribute()) as call,
            ) if not isinstance(key, ast.Constant):
                there = any(each.arg == "non_blocking" for each in call.keywords)
                found.update([name] * (there or to_a_device(call, function, beside)))
    return frozenset(found.intersection(function.names))


@kept(8)
def handed_over(function: ast.AST) -> frozenset[int]:
    """The calls whose values are arguments of others: what is moved as a whole, a model, stands by itself most often."""
    calls = (each for each in walk(function) if isinstance(each, ast.Call))
    return frozenset(id(each) for call in calls for each in call.args if isinstance(each, ast.Call))


@kept(8)  # each holds all of its file
def _sent(function: ProjectFunction) -> frozenset[int]:
    node = function.node
    a = node.args
    listed = (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
    given = {each.arg for each in listed if each is not None} - {"self", "cls"}
    every = walk(node)
    calls = [each for each in every if isinstance(each, ast.Call)]
    beside = devices_of_tensors(every)
    sending = [each for each in calls if isinstance(each.func, ast.Attribute) and to_a_device(each, function, beside)]
    if not sending:
        return frozenset()
    if _makes_its_like(function, calls) or _fills_another(function, every):
        named = (each for each in sending if dotted(each.func).startswith("self.") or _is_part(each.func.value, set()))  # type: ignore[attr-defined]
        return frozenset(map(id, named))
    if function.cls is not None and function.name in _SENDERS and not is_module(function.cls):
        # `self.apply(lambda x: x.to(device))`
        handed = {id(each.body) for each in every if isinstance(each, ast.Lambda)}
        own = _own_parts(every)
        of_own = {id(each) for each in sending if _is_part(each.func.value, own)}  # type: ignore[attr-defined]
        if of_each := (handed & {id(each) for each in sending}) | of_own:
            return frozenset(of_each)
    each_of, unpacked = _parts(every, given)
    recursive = any(dotted(each.func) in (function.name, f"self.{function.name}") for each in calls)
    one_by_one = {each_of[name] for each in sending if (name := name_of(_of_rows(each))) in each_of}
    found: set[int] = set()
    by_name: list[tuple[str, str, int]] = []  # the argument, its part, and the call that sends it
    for each in sending:
        match _of_rows(each):
            case ast.Name(id=name):
                if name in each_of or (recursive and name in given) or name in one_by_one:
                    found.add(id(each))
                elif name in unpacked:
                    by_name.append((unpacked[name], name, id(each)))
            case ast.Subscript(value=ast.Name(id=name), slice=key) if name in given and not (
                devices.is_model(name) or devices.is_model(entry_named(key))
            ):
                if name_of(key) in each_of:
                    found.add(id(each))
                elif isinstance(key, ast.Constant):
                    by_name.append((name, ast.unparse(key), id(each)))
    several = Counter(of for of, _ in {(of, part) for of, part, _ in by_name})
    return frozenset(found.union(call for of, _, call in by_name if several[of] >= _SEVERAL))


def _own_parts(every: list[ast.AST]) -> set[str]:
    """The names of each part in a loop over what an object holds, `for part in self.parts.values()`, or over such a part."""
    found = {"self"}
    for each in every:
        match each:
            case ast.For(target=part, iter=over) | ast.comprehension(target=part, iter=over):
                if any(isinstance(of, ast.Name) and of.id in found for of in walk(over)):
                    found.update(_names(part))
    return found - {"self"}


def _is_part(node: ast.expr, own: set[str]) -> bool:
    """Whether it is one of these parts, or the object's attribute of some name: `getattr(self, name)`."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="self"), ast.Name() | ast.Attribute()]):
            return True
    return isinstance(node, ast.Name) and node.id in own


def _of_rows(call: ast.Call) -> ast.expr:
    """What is sent, or of what some rows are: `part` of `part[i : i + n].to(device)`."""
    node: ast.expr = call.func.value  # type: ignore[attr-defined]  # of an attribute, as was asked
    return node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) else node


def _makes_its_like(function: ProjectFunction, calls: list[ast.Call]) -> bool:
    """Whether a method `to(self, device)` gives another object of its class: so what is part of a batch is sent."""
    cls = function.cls
    if cls is None or function.name not in _SENDERS:
        return False
    made = {dotted(each.func) for each in calls} | {"type" for each in calls if isinstance(each.func, ast.Call)}
    return not made.isdisjoint((cls.name, "self.__class__", "cls", "type", "replace", "dataclasses.replace"))


def _fills_another(function: ProjectFunction, every: list[ast.AST]) -> bool:
    """Whether a method `to(self, device)` puts what it sends into another object: `new.points = self.points.to(device)`."""
    if function.cls is None or function.name not in _SENDERS or is_module(function.cls):
        return False
    for each in every:
        match each:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=other), attr=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=same))),
            ) if other != "self" and name == same:
                return True
    return False


def _parts(every: list[ast.AST], given: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The names of each part of an argument in a loop over it, or over what it unpacks to, and those under which one is
    unpacked, with the argument."""
    each_of: dict[str, str] = {}
    unpacked: dict[str, str] = {}
    for each in every:
        match each:
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Name(id=name)) if name in given:
                unpacked.update(dict.fromkeys(_names(target), name))
    for each in every:
        match each:
            case ast.For(target=part, iter=over) | ast.comprehension(target=part, iter=over):
                name = _argument(over)
                of = name if name in given else each_of.get(name) or unpacked.get(name)
                if of is not None:
                    each_of.update(dict.fromkeys(_names(part), of))
    return each_of, unpacked


def _argument(over: ast.expr) -> str:
    """The argument that a loop goes over: `batch`, `batch[:5]`, `batch.items()`, `enumerate(batch)`."""
    match over:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=value, slice=ast.Slice()) | ast.Call(func=ast.Name(id="enumerate"), args=[value]):
            return _argument(value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=[]) if attr in _VIEWS:
            return name
    return ""


def _names(target: ast.expr) -> Iterator[str]:
    return (each.id for each in walk(target) if isinstance(each, ast.Name))


def entry_named(key: ast.expr) -> str:
    """What an entry of a dict is called by its key, `"x"` or `keys.X`; nothing of what counts or picks."""
    if isinstance(key, ast.Constant):
        return key.value if isinstance(key.value, str) else ""
    return key.attr if isinstance(key, ast.Attribute) else ""


def devices_of_tensors(every: list[ast.AST]) -> set[str]:
    """Names of where a tensor lives, as of one part to which all are sent: `device = parts[0].device`."""
    found: set[str] = set()
    for each in every:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(value=owner, attr="device")):
                if not isinstance(owner, ast.Call) and not devices.knows_device(name_of(owner)):
                    found.add(name)
    return found


def _is_off(flag: ast.expr, function: ProjectFunction | None) -> bool:
    """Whether a flag is False, or is handed on from an argument that is so where it is left out."""
    if isinstance(flag, ast.Name) and function is not None and flag.id in function.names:
        defaults = function.node.args.defaults
        named = dict(zip(function.names[len(function.names) - len(defaults) :], defaults, strict=True))
        flag = named.get(flag.id, flag)
    return isinstance(flag, ast.Constant) and flag.value is False


def to_a_device(call: ast.Call, function: ProjectFunction | None, beside: set[str]) -> bool:
    """`x.cuda()`, `x.to(device)`: not `x.to(y.device)`, where it may be already."""
    word = name_of(call.func)
    if any(each.arg == "non_blocking" and not _is_off(each.value, function) for each in call.keywords):
        return False
    if word == "cuda":
        return True
    if word != "to":
        return False
    named = next((each.value for each in call.keywords if each.arg == "device"), None)
    match named or (call.args[0] if call.args else None):
        case ast.Starred():
            return True  # whatever a helper is told
        case ast.Constant(value=str(where)):
            return where.startswith("cuda")
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[]):
            return devices.is_one(name) and name not in beside
        case ast.Attribute(value=owner, attr=name):
            return devices.is_one(name) and devices.knows_device(name_of(owner))
        case ast.Subscript(slice=ast.Constant(value=str(name))) | ast.Subscript(slice=ast.Attribute(attr=name)):
            return "device" in name.lower()
    return False
