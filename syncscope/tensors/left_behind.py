"""What an object leaves on the host: tensors that its set-up makes there, and nothing takes along."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from syncscope.model.source import line_starts
from syncscope.project import conventions
from syncscope.project.modules import Class
from syncscope.project.names import ancestry
from syncscope.project.of_file import kept
from syncscope.project.syntax import dotted, name_of, statements, walk
from syncscope.tensors.instances import set_up_by
from syncscope.tensors.torch.signatures import FACTORIES

_REGISTERED = re.compile(rb"register_buffer\(\s*[\"'](\w+)[\"']")
_MOVING = frozenset(("_apply", "to", "cuda"))


def is_left_behind(cls: Class, name: str) -> bool:
    """Whether a module made this on the host, registered it nowhere, and gives it no other value afterwards."""
    kin = ancestry(cls)
    if not any(name in each.made_on_host for each in kin):
        return False
    by = set_up_by(cls)
    made = [value for each in kin for value in _set_up(each.node, by).get(name, ())]
    if not made or not all(map(_is_made, made)):
        return False  # it was given, perhaps from the device
    return not any(moves_along(each, name) or name in _set_later(each.node, by) for each in kin)


_GIVEN_BACK = frozenset(("as_tensor", "asarray"))  # what is given a tensor gives that tensor


def _is_made(node: ast.expr | None) -> bool:
    """Whether a function of torch makes this of no other tensor, and methods may change it: `torch.arange(n).float()`."""
    if isinstance(node, ast.IfExp):
        return _is_made(node.body) and _is_made(node.orelse)
    if isinstance(node, ast.Constant):
        return node.value is None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if name_of(node.func.value) == "torch":
            return node.func.attr in FACTORIES and node.func.attr not in _GIVEN_BACK
        node = node.func.value
    return False


def moves_along(cls: Class, name: str) -> bool:
    """Whether a class registers an attribute as a buffer, keeps it where it was moved, or moves itself by hand."""
    own = (_taken_along(cls.methods[each].node) for each in _MOVING if each in cls.methods)
    if moves_by_name(cls) or any(names is None or name in names for names in own):
        return True
    return name in _moved(cls.node, cls.module.source)


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ANY = frozenset("setattr getattr super vars __dict__ replace update apply _apply map_structure tree_map".split())
_BY_ANOTHER = frozenset(f"self.{each}" for each in _MOVING)
_SAME = frozenset("clone detach copy".split())


@kept(64)
def _taken_along(method: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str] | None:
    """The attributes that a method moves with its object; None where it may be any: it names none, or goes through them."""
    every = walk(method)
    if any(isinstance(each, _LOOPS) or name_of(each) in _ANY for each in every):
        return None
    # `return self.to("cuda")` leaves it to another
    named = any(isinstance(each, ast.Attribute) and dotted(each) in _BY_ANOTHER for each in every)
    found = set[str]()
    for each in statements(method):
        if not isinstance(each, ast.Assign):
            continue
        for target in each.targets:
            if isinstance(target, ast.Attribute):
                named = True
                if not _is_same(each.value, target.attr):
                    found.add(target.attr)
    return frozenset(found) if named else None


def _is_same(value: ast.expr, name: str) -> bool:
    """Whether this is an attribute as it was, or a copy of it: `self.sizes.clone()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
        value = value.func.value
    return isinstance(value, ast.Attribute) and value.attr == name


@kept(64)
def _moved(node: ast.ClassDef, source: bytes) -> frozenset[str]:
    """The attributes that a class registers, or that its statements give what was moved."""
    starts = line_starts(source)
    end = node.end_lineno or node.lineno
    text = source[starts[node.lineno - 1] : starts[end] if end < len(starts) else len(source)]
    found = {name.decode() for name in _REGISTERED.findall(text)}
    for each in statements(node):
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            names = [name for at in targets for name in _of_self(at)]
            if names and each.value is not None and _is_sent(each.value):
                found.update(names)
    return frozenset(found)


def moves_by_name(cls: Class) -> bool:
    """Whether a class gives attributes, of which it has the names, what was moved: `setattr(self, name, x.to(device))`."""
    return b"setattr" in cls.module.source and _moves_by_name(cls.node)


@kept(64)
def _moves_by_name(node: ast.ClassDef) -> bool:
    for each in statements(node):
        match each:
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), name, value])
                | ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="__setattr__"), args=[name, value])
            ) if not isinstance(name, ast.Constant) and _is_sent(value):
                return True
    return False


@kept(64)
def movers(node: ast.ClassDef) -> dict[str, set[str]]:
    """By the attributes of a class the methods, its set-up aside, that keep them where they move them."""
    found: dict[str, set[str]] = defaultdict(set)
    for method in _methods(node, conventions.SET_UP, False):
        for each in statements(method):
            if isinstance(each, ast.Assign) and _is_sent(each.value):
                for name in (name for at in each.targets for name in _own(at)):
                    found[name].add(method.name)
    return found


def _of_self(target: ast.expr) -> list[str]:
    """The attributes of itself that a target is, or is in: `self.w`, `self.w.data`, `self.w[i]`."""
    return [each.attr for each in walk(target) if isinstance(each, ast.Attribute) and name_of(each.value) == "self"]


def _is_sent(value: ast.expr) -> bool:
    """Whether something in a value is moved, or a device is spoken of."""
    for each in walk(value):
        match each:
            case ast.Call(func=ast.Attribute(attr="to" | "cuda" | "type_as")):
                return True
            case ast.Name(id=str(word)) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)) if "device" in word:
                return True
            case ast.Constant(value=str(word)) if "device" in word:
                return True
    return False


def _methods(node: ast.ClassDef, set_up: tuple[str, ...], setting_up: bool) -> Iterator[ast.FunctionDef]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name in set_up) is setting_up:
            yield each


@kept(64)
def _set_up(node: ast.ClassDef, by: tuple[str, ...]) -> dict[str, list[ast.expr | None]]:
    """The attributes of itself that the set-up of a class sets, each with its values where these stand alone."""
    found: dict[str, list[ast.expr | None]] = defaultdict(list)
    for method in _methods(node, by, True):
        for each in statements(method):
            if isinstance(each, ast.Assign):
                alone = len(each.targets) == 1 and isinstance(each.targets[0], ast.Attribute)
                for name in (name for at in each.targets for name in _own(at)):
                    found[name].append(each.value if alone else None)
            elif isinstance(each, (ast.AnnAssign, ast.AugAssign)):
                for name in _own(each.target):
                    found[name].append(each.value)
    return found


def _own(target: ast.AST) -> list[str]:
    """The attributes of itself that stand in a target."""
    return [
        each.attr
        for each in walk(target)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and name_of(each.value) == "self"
    ]


@kept(64)
def _set_later(node: ast.ClassDef, by: tuple[str, ...]) -> frozenset[str]:
    """The attributes of itself that a class sets outside of its set-up."""
    return frozenset(name for method in _methods(node, by, False) for name in _own(method))
