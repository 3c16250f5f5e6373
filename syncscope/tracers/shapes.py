"""Shapes and types of the tensors an operator of our own device was given and made, in the words of torch.profiler.

Looking at a call makes a key of it, in about a microsecond; only the first of each key is put into words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
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
TENSOR, LIST, NOTHING, OTHER, RESULT = range(5)


class _Kinds(dict[type, int]):
    """What an argument of this class is; asking each for its base classes would cost more than all the rest."""

    def __missing__(self, kind: type) -> int:
        if issubclass(kind, sys.modules["torch"].Tensor):
            self[kind] = TENSOR
        elif issubclass(kind, (list, tuple)):
            self[kind] = LIST
        else:
            self[kind] = NOTHING if kind is type(None) else OTHER
        return self[kind]


_kinds = _Kinds()


_NUMBERS = ("ScalarList",)


def _key(values: Any) -> list[Any]:
    """(shape, type) of a tensor as two entries, what the others are as one."""
    found: list[Any] = []
    for value in values:
        kind = _kinds[value.__class__]
        if kind == TENSOR:
            found.append(value.shape)
            found.append(value.dtype)
        elif kind == LIST:
            numbers = not value or value[0].__class__ is int
            found.append(_NUMBERS if numbers else ("TensorList", *_key(value)))
        else:
            found.append(kind)
    return found


def words(key: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dims and types, as `Input Dims` and `Input type` of torch.profiler's; the types of a list of tensors one by one."""
    shapes: list[Any] = []
    types: list[Any] = []
    entries = iter(key)
    for entry in entries:
        if entry in (NOTHING, OTHER):
            shapes.append([])
            types.append("" if entry == NOTHING else "Scalar")
        elif entry == _NUMBERS:
            shapes.append([])
            types.append("ScalarList")
        elif entry[:1] == ("TensorList",):
            dims, names = words(list(entry[1:]))
            shapes.append(dims if any(dims) else [])
            types.append(names if any(dims) else "ScalarList")
        else:
            name = str(next(entries)).removeprefix("torch.")
            shapes.append(list(entry))
            types.append(NAMES.get(name, f"c10::{name.capitalize()}"))
    return shapes, types


class Shapes:
    """Numbers of what was seen; `note` gives a number to a text."""

    def __init__(self, note: Callable[[str], int]) -> None:
        self._note = note
        self._known: dict[Any, int] = {}

    def number(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """The number of this call's detail, 0 for none."""
        made = result if _kinds[result.__class__] == LIST else (result,)
        found = _key(args)
        for value in kwargs.values():
            for one in made:
                if value is one:  # what was given as `out=`
                    break
            else:
                found += _key((value,))
        found.append(RESULT)
        found += _key(made)
        key = tuple(found)
        number = self._known.get(key)
        return self._new(key) if number is None else number

    def _new(self, key: tuple[Any, ...]) -> int:
        if len(self._known) >= MOST:
            return 0
        at = key.index(RESULT)
        dims, types = words(list(key[:at]))
        facts = {"Input Dims": dims, "Input type": types}
        if any(not isinstance(entry, int) for entry in key[at + 1 :]):
            facts["Output Dims"], facts["Output type"] = words(list(key[at + 1 :]))
        self._known[key] = self._note(json.dumps(facts, separators=(",", ":")))
        return self._known[key]
