"""Shapes and types of the tensors an operator of our own device was given and made, in the words of torch.profiler.

This runs after every operator: a call that looks like an earlier one costs two look-ups, of its types and of its shapes, and
only the first of each kind is put into words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any

# Kineto's names of what is not called as in C++ with `c10::` before it.
NAMES = {
    "float32": "float",
    "float64": "double",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
MOST = 65536  # different calls that are put into words: shapes that follow the data must not fill the memory
_seen = attrgetter("shape", "dtype")
_Pick = Callable[[tuple[Any, ...]], Any]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules["torch"].Tensor)


def _deep(values: Any) -> tuple[Any, ...]:
    """A key of a call with lists of tensors."""
    return tuple(
        _seen(v) if _is_tensor(v) else _deep(v) if isinstance(v, (list, tuple)) else v.__class__ for v in values
    )


def words(values: Any) -> tuple[list[Any], list[Any]]:
    """Dims and types, as `Input Dims` and `Input type` of torch.profiler's; the types of a list of tensors one by one."""
    shapes: list[Any] = []
    types: list[Any] = []
    for value in values:
        dims: list[Any] = []
        name: Any = "" if value is None else "Scalar"
        if _is_tensor(value):
            dims, name = list(value.shape), str(value.dtype).removeprefix("torch.")
            name = NAMES.get(name, f"c10::{name.capitalize()}")
        elif isinstance(value, (list, tuple)):
            dims, name = words(value) if any(map(_is_tensor, value)) else ([], "ScalarList")
        shapes.append(dims)
        types.append(name)
    return shapes, types


class Shapes:
    """Numbers of what was seen; `note` gives a number to a text."""

    def __init__(self, note: Callable[[str], int]) -> None:
        self._note = note
        self._plans: dict[Any, tuple[Any, _Pick | None]] = {}
        self._known: dict[Any, int] = {}

    def number(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """The number of this call's detail, 0 for none."""
        if kwargs and "out" not in kwargs:
            values = (*args, *kwargs.values())
        else:
            values = args
        values = values + result if result.__class__ is tuple else (*values, result)
        types = (name, *map(type, values))
        plan = self._plans.get(types)
        if plan is None:
            plan = self._plan(types, values)
        which, pick = plan
        key = (which, _deep(values)) if pick is None else (which, *map(_seen, pick(values)))
        number = self._known.get(key)
        return self._new(key, args, kwargs, result) if number is None else number

    def _plan(self, types: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, _Pick | None]:
        """Which of the values of such a call are tensors; None where they stand in lists, too."""
        pick: _Pick | None = None
        at = [i for i, value in enumerate(values) if _is_tensor(value)]
        numbers = (not isinstance(v, (list, tuple)) or (v and isinstance(v[0], (int, float))) for v in values)
        if at and all(numbers):
            pick = itemgetter(*at, at[0])  # never of one place only: that would give the value, and not a tuple
        self._plans[types] = plan = (len(self._plans) if pick else types, pick)
        return plan

    def _new(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        if len(self._known) >= MOST:
            return 0
        made = result if isinstance(result, (list, tuple)) else (result,)
        given = [*args, *(v for v in kwargs.values() if not any(v is m for m in made))]  # `out=` is what is made
        facts = dict(zip(("Input Dims", "Input type"), words(given), strict=True))
        if any(map(_is_tensor, made)):
            facts["Output Dims"], facts["Output type"] = words(made)
        self._known[key] = self._note(json.dumps(facts, separators=(",", ":")))
        return self._known[key]
