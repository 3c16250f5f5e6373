"""Shapes and types of the tensors an operator of our own device was given and made, in the words of torch.profiler.

This runs after every operator: a call that looks like an earlier one costs a look-up, and only the
first of each kind is put into words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Any

from syncscope.model.detail import Detail

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
SILENT = frozenset(f"aten::{name}" for name in ("empty", "empty_strided", "resize_", "set_"))  # the device does nothing
_SHAPE, _DTYPE, _NONE = repeat("shape"), repeat("dtype"), repeat(None)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules["torch"].Tensor)


def _deep(values: Any) -> tuple[Any, ...]:
    """A key of a call with lists of tensors."""
    return tuple(
        (v.shape, v.dtype) if _is_tensor(v) else _deep(v) if isinstance(v, (list, tuple)) else v.__class__
        for v in values
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
        self._known: dict[Any, int] = {}
        self._with_lists: set[str] = set()  # operators that were seen to take lists of tensors

    def number(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """The number of this call's detail, 0 for none."""
        if name in SILENT:
            return 0
        values = args + result if result.__class__ is tuple else (*args, result)
        if kwargs and "out" not in kwargs:
            values = (*values, *kwargs.values())
        key: Any
        if name in self._with_lists:
            key = name, _deep(values)
        else:  # all of it runs in C: what is no tensor has neither
            key = (name, *map(getattr, values, _SHAPE, _NONE), *map(getattr, values, _DTYPE, _NONE))
        number = self._known.get(key)
        return self._new(key, name, args, kwargs, result) if number is None else number

    def _new(self, key: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        if len(self._known) >= MOST:
            return 0
        made = result if isinstance(result, (list, tuple)) else (result,)
        given = [*args, *(v for v in kwargs.values() if not any(v is m for m in made))]  # `out=` is what is made
        if name not in self._with_lists and any(
            isinstance(v, (list, tuple)) and any(map(_is_tensor, v)) for v in given
        ):
            self._with_lists.add(name)
            return self.number(name, args, kwargs, result)  # by the key that tells the tensors in lists apart
        dims, types = words(given)
        facts = Detail(input_dims=tuple(dims), input_types=tuple(types))
        if any(map(_is_tensor, made)):
            dims, types = words(made)
            facts = replace(facts, output_dims=tuple(dims), output_types=tuple(types))
        number = self._known[key] = self._note(facts.text())
        return number
