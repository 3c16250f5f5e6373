"""What is known of a value without running the program, and where it makes the host wait."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from syncscope.model.heat import Heat
from syncscope.model.ops import Op
from syncscope.model.source import Place, Span


class _Word(Enum):
    """A word of which there is one object: hashed by that, a hundred thousand times, and not by its name."""

    __hash__ = object.__hash__


class Value(_Word):
    """What a value is."""

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    MODULE = "module"
    BATCH = "batch"
    ARRAY = "array"  # numpy
    SCALAR = "scalar"  # a Python number or bool
    SEQUENCE = "sequence"  # tuple, list or dict whose elements are known
    OTHER = "other"  # known to be none of these


class Dtype(_Word):
    """The class of a dtype: whether an index is a mask or a gather hangs on it."""

    UNKNOWN = "unknown"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    COMPLEX = "complex"


class Device(_Word):
    """Where a tensor lives."""

    UNKNOWN = "unknown"
    HOST = "host"
    DEVICE = "device"
    DEFAULT = "host unless told otherwise"


class Shape(_Word):
    """Whether a shape is known before the device has computed."""

    UNKNOWN = "unknown"
    FIXED = "fixed"
    DYNAMIC = "dynamic"  # depends on data


class Fact:
    """What is known of one value; `confidence` is 0 (a guess) to 3 (torch's own API says so).

    A plain class, made by the hundred thousand: treat it as immutable. `provenance` is where it was learnt (words, or the
    expression in the `ast`), `source` the fact it was derived from; `why` renders that chain only when asked. `ref` is the
    interpreter's own note of what a value stands for (a function, a class, a dotted name).
    """

    __slots__ = ("confidence", "device", "dtype", "elements", "kind", "ndim", "provenance", "ref", "shape", "source")

    def __init__(
        self,
        kind: Value = Value.UNKNOWN,
        dtype: Dtype = Dtype.UNKNOWN,
        device: Device = Device.UNKNOWN,
        shape: Shape = Shape.UNKNOWN,
        ndim: int | None = None,
        confidence: int = 0,
        why: tuple[str, ...] | str | ast.AST = (),
        elements: tuple[Fact, ...] = (),  # of a SEQUENCE, in order
        ref: object = None,
        source: Fact | None = None,
    ) -> None:
        self.kind = kind
        self.dtype = dtype
        self.device = device
        self.shape = shape
        self.ndim = ndim
        self.confidence = confidence
        self.provenance = why
        self.elements = elements
        self.ref = ref
        self.source = source

    def but(
        self,
        *,
        dtype: Dtype | None = None,
        ndim: int | None = -1,
        confidence: int | None = None,
        device: Device | None = None,
        why: tuple[str, ...] | str | ast.AST | None = None,
    ) -> Fact:
        """The same with these changes; with a `why` it is derived from this one. `ndim` -1 keeps it."""
        return Fact(
            self.kind,
            self.dtype if dtype is None else dtype,
            self.device if device is None else device,
            self.shape,
            self.ndim if ndim == -1 else ndim,
            self.confidence if confidence is None else confidence,
            self.provenance if why is None else why,
            self.elements,
            self.ref,
            self.source if why is None else self,
        )

    @property
    def why(self) -> tuple[str, ...]:
        """How it came to be known, from the first reason to the last."""
        said: list[tuple[str, ...]] = []
        fact: Fact | None = self
        while fact is not None and len(said) < _LONGEST_CHAIN:
            said.append(_words(fact.provenance))
            fact = fact.source
        lines: dict[str, None] = {}
        for words in reversed(said):
            lines.update(dict.fromkeys(words))
        return tuple(lines)

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, wherever it lives."""
        return self.kind is Value.TENSOR

    @property
    def on_device(self) -> bool:
        """Whether it is a tensor that a device must compute."""
        return self.kind is Value.TENSOR and self.device is Device.DEVICE

    def _known(self) -> tuple[object, ...]:
        return (self.kind, self.dtype, self.device, self.shape, self.ndim, self.confidence, self.elements)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Fact) and self._known() == other._known())

    def __hash__(self) -> int:
        return hash(self._known())

    def __repr__(self) -> str:
        return f"Fact({self})"

    def __str__(self) -> str:
        words = [self.kind.value]
        words += [w.value for w in (self.dtype, self.device, self.shape) if w.value != "unknown"]
        words += [f"{self.ndim}-d"] if self.ndim is not None else []
        return f"{' '.join(words)} {self.confidence}"


_LONGEST_CHAIN = 12  # links of a `why`: what lies further back no longer explains anything


@lru_cache(maxsize=256)  # the findings of a function have most of their reasons in common
def _words(said: tuple[str, ...] | str | ast.AST) -> tuple[str, ...]:
    if isinstance(said, tuple):
        return said
    if isinstance(said, str):
        return (said,)
    text = ast.unparse(said).partition("\n")[0]
    line = getattr(said, "lineno", 0)
    return (f"line {line}: {text if len(text) <= 100 else text[:97] + '...'}",)


UNKNOWN = Fact()


class Emitted(NamedTuple):
    """A Site before it is asked for: what was seen where the host would wait, and what the block around it says of its heat."""

    op: Op
    node: ast.AST
    operand: ast.expr | None
    fact: Fact
    confidence: int
    heat: Heat | None


@dataclass(frozen=True, slots=True)
class Site:
    """An expression that makes the host wait if its operand lives on a device.

    `node` is the expression in the `ast` of the file, `operand` the part of it that is read, `function` the innermost enclosing
    function. `fact_of` answers for any other expression of that function, as seen where it stands.
    """

    op: Op
    place: Place
    span: Span
    node: ast.AST
    operand: ast.expr | None
    fact: Fact
    confidence: int
    heat: Heat
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    fact_of: Callable[[ast.expr], Fact] = field(default=lambda _: UNKNOWN, repr=False, compare=False)

    @property
    def hot(self) -> bool:
        """Whether it runs in every step."""
        return self.heat.hot

    @property
    def whole(self) -> bool:
        """Whether it does, and is worth more than a line."""
        return self.heat.whole
