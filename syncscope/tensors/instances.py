"""Objects of the project's classes, and methods together with theirs."""

from __future__ import annotations

from syncscope.model.fact import Fact
from syncscope.project import conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import find_method, outside
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


def is_module(cls: Class) -> bool:
    """Whether it is an nn.Module: by its bases, else by the looks of a base that cannot be seen."""
    for dotted in outside(cls):
        word = dotted.rpartition(".")[2]
        if dotted.startswith("torch.nn.") or word in table().modules or word in conventions.MODULES:
            return True
        elsewhere = not dotted.startswith(("torch.", "builtins.", "typing.", "abc."))
        if elsewhere and word.endswith(conventions.MODULE_ENDINGS):
            return find_method(cls, "forward") is not None
    return False


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
