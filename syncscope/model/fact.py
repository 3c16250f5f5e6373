"""What is known of a value without running the program, and where it makes the host wait."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from syncscope.model.source import Place, Span


class Value(Enum):
    """What a value is."""

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    MODULE = "module"
    BATCH = "batch"
    ARRAY = "array"  # numpy
    SCALAR = "scalar"  # a Python number or bool
    SEQUENCE = "sequence"  # tuple, list or dict whose elements are known
    OTHER = "other"  # known to be none of these


class Dtype(Enum):
    """The class of a dtype: whether an index is a mask or a gather hangs on it."""

    UNKNOWN = "unknown"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    COMPLEX = "complex"


class Device(Enum):
    """Where a tensor lives."""

    UNKNOWN = "unknown"
    HOST = "host"
    DEVICE = "device"


class Shape(Enum):
    """Whether a shape is known before the device has computed."""

    UNKNOWN = "unknown"
    FIXED = "fixed"
    DYNAMIC = "dynamic"  # depends on data


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one value; `sure` is 0 (a guess) to 3 (torch's own API says so)."""

    kind: Value = Value.UNKNOWN
    dtype: Dtype = Dtype.UNKNOWN
    device: Device = Device.UNKNOWN
    shape: Shape = Shape.UNKNOWN
    ndim: int | None = None
    sure: int = 0
    why: tuple[str, ...] = ()
    elements: tuple[Fact, ...] = ()  # of a SEQUENCE, in order

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, wherever it lives."""
        return self.kind is Value.TENSOR

    @property
    def on_device(self) -> bool:
        """Whether it is a tensor that a device must compute."""
        return self.kind is Value.TENSOR and self.device is Device.DEVICE


UNKNOWN = Fact()


@dataclass(frozen=True, slots=True)
class Site:
    """An expression that makes the host wait if its operand lives on a device.

    `op` names the way of waiting ("item", "nonzero", "index", ...); `tensors.signatures` has the list. `node` is the
    expression in the `ast` of the file, `operand` the part of it that is read, `function` the innermost enclosing
    function. `fact_of` answers for any other expression of that function, as seen where it stands.
    """

    op: str
    place: Place
    span: Span
    node: ast.AST
    operand: ast.expr | None
    fact: Fact
    sure: int
    hot: bool
    heat: str = ""  # why it is hot or cold, in words
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    fact_of: Callable[[ast.expr], Fact] = field(default=lambda _: UNKNOWN, repr=False, compare=False)
