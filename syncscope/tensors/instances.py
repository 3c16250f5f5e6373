"""Objects of the project's classes, and methods together with theirs."""

from __future__ import annotations

import ast

from syncscope.model.fact import Fact
from syncscope.project import conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import ancestry, find_method, outside
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import walk
from syncscope.tensors.facts import MODULE, OTHER, tensor
from syncscope.tensors.torch.signatures import table


class Instance:
    """An object of a class of the project."""

    __slots__ = ("cls",)

    def __init__(self, cls: Class) -> None:
        self.cls = cls


class Bound:
    """A method together with the object it was taken from."""

    __slots__ = ("function", "owner")

    def __init__(self, function: ProjectFunction, owner: Fact) -> None:
        self.function = function
        self.owner = owner


_REGISTERS = (b"self.register_buffer(", b"self.register_parameter(")


def is_module(cls: Class) -> bool:
    """Whether it is an nn.Module: by its bases, else by the looks of a base that cannot be seen, or by what it registers."""
    for dotted in outside(cls):
        word = dotted.rpartition(".")[2]
        if dotted.startswith("torch.nn.") or word in table().modules or word in conventions.MODULES:
            return True
        elsewhere = not dotted.startswith(("torch.", "builtins.", "typing.", "abc."))
        if elsewhere and word.endswith(conventions.MODULE_ENDINGS):
            return find_method(cls, "forward") is not None
        if elsewhere and any(each in cls.module.source for each in _REGISTERS):
            return any(each in cls.text for each in _REGISTERS)
    return False


_FUNCTION = "torch.autograd.Function"
_OF_FUNCTION = ("forward", "setup_context")
_GIVEN_CTX = frozenset((*_OF_FUNCTION, "backward", "vjp", "jvp"))


def is_autograd_function(cls: Class) -> bool:
    """Whether it derives from torch.autograd.Function: its methods are given a `ctx`, on which one keeps what another needs."""
    return _FUNCTION in outside(cls)


def is_given_ctx(function: ProjectFunction, cls: Class) -> bool:
    """Whether it is such a method, and not a `forward` that leaves what is kept to `setup_context`."""
    if function.name not in _GIVEN_CTX or not is_autograd_function(cls):
        return False
    return function.name != "forward" or find_method(cls, "setup_context") is None


def set_up_by(cls: Class) -> tuple[str, ...]:
    """The methods that set what an object of a class holds: those that `__init__` calls of itself, too."""
    return _OF_FUNCTION if is_autograd_function(cls) else _set_up(cls)


@kept(MANY)
def _set_up(cls: Class) -> tuple[str, ...]:
    called = dict.fromkeys(name for each in ancestry(cls) for name in _called_to_set_up(each.node))
    return (*conventions.SET_UP, *(each for each in called if each not in (*conventions.SET_UP, *conventions.FORWARD)))


@kept(MANY)
def _called_to_set_up(node: ast.ClassDef) -> tuple[str, ...]:
    """What the constructor of a class calls of its object, and what that calls in the same class."""
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    found: dict[str, None] = {"__init__": None}
    todo = ["__init__"]
    while todo:
        method = methods.get(todo.pop())
        for each in walk(method) if method is not None else ():
            match each:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name not in found:
                    found[name] = None
                    todo.append(name)
    return tuple(found)


def is_tensor(cls: Class) -> bool:
    """Whether it derives from torch.Tensor."""
    return any(dotted in ("torch.Tensor", "torch.nn.Parameter") for dotted in outside(cls))


def instance(cls: Class) -> Fact:
    """An object of a class."""
    if cls.instance is None and is_tensor(cls):
        cls.instance = tensor(confidence=3, why=f"{cls.name} derives from torch.Tensor")
        cls.instance.ref = Instance(cls)
    if cls.instance is None:
        cls.instance = Fact(OTHER, confidence=3, ref=Instance(cls))
        if is_module(cls):
            cls.instance = Fact(MODULE, confidence=3, ref=cls.instance.ref)
    return cls.instance
