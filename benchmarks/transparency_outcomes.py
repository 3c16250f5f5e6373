"""What came of a call, in words that mean the same in another process; and what a program could find left of a recording."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SHOWN = 200  # characters of an outcome


def described(value: Any, deep: int = 0) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return _tensor(value, deep)
    if isinstance(value, np.ndarray):
        return [
            "array",
            str(value.dtype),
            value.shape,
            value.strides,
            [repr(v) for v in value.ravel().tolist()[:10000]],
        ]
    if deep > 5:
        return type(value).__name__
    if isinstance(value, dict):
        return [type(value).__name__, [[described(k, deep + 1), described(v, deep + 1)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)) or type(value).__name__ in ("dict_keys", "odict_keys"):
        return [type(value).__name__, [described(v, deep + 1) for v in value]]
    if isinstance(value, torch.nn.Module):
        return [type(value).__name__, described(value.state_dict(), deep + 1)]
    return [type(value).__name__, plain(repr(value))]


def plain(text: str) -> str:
    """Without addresses and names of temporary things."""
    return re.sub(r"0x[0-9a-f]+|/tmp/\S+|(?<=id=)\d+", "...", text)


def _tensor(value: Any, deep: int) -> Any:
    import torch

    said = [
        type(value).__name__,
        str(value.dtype),
        list(value.shape),
        value.requires_grad,
        value.is_leaf,
        str(value.layout),
    ]
    said.append(str(value.device))
    said.append(sorted(vars(value)))
    if value.is_leaf and value.grad is not None:
        said.append(described(value.grad, deep + 1))
    plain_type = type(value).__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl
    if value.is_meta or not plain_type:
        return said
    value = value.detach()
    if value.is_sparse:
        value = value.coalesce()
        return [*said, described(value.indices(), deep + 1), described(value.values(), deep + 1)]
    if value.layout is not torch.strided or value.is_nested:
        return said
    value = value.as_subclass(torch.Tensor)
    said.append(list(value.stride()))
    if value.is_quantized:
        value = value.int_repr()
    value = value.resolve_conj().resolve_neg().cpu().flatten().clone(memory_format=torch.contiguous_format)
    said.append(hashlib.sha1(value.view(torch.uint8).numpy().tobytes() if value.numel() else b"").hexdigest())
    return [*said, value[:4].tolist()]


class Outcomes:
    """Calls and what came of them."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Any, ...]] = {}
        self.said: dict[str, str] = {}
        self.undescribed = self.unmade = 0

    def call(self, name: str, function: Callable[[], Any]) -> None:
        """Calls, and notes the result, or what it raised, and the warnings."""
        import torch

        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                result: Any = ("gave", function())
            except Exception as error:
                result = ("raised", type(error).__name__, plain(str(error)))
        self._found[name] = (result, [(w.category.__name__, plain(str(w.message))) for w in heard])

    def describe(self) -> None:
        """In words, once the block has been left."""
        for name, (result, heard) in self._found.items():
            try:
                words = described(result)
            except Exception:  # not compared, and counted: what has no words would be equal to anything
                self.undescribed += 1
                continue
            text = json.dumps([words, sorted(set(heard))], default=repr)
            self.said[name] = f"{hashlib.sha1(text.encode()).hexdigest()[:12]} {text[:SHOWN]}"
        self._found.clear()


def state() -> dict[str, Any]:
    """Every pointer and attribute that a recording might have touched."""
    import torch

    word = lambda address: ctypes.c_uint64.from_address(address).value  # noqa: E731
    found: dict[str, Any] = {}
    owners = {
        "Tensor": torch.Tensor,
        "TensorBase": torch._C.TensorBase,
        "functions": torch._C._VariableFunctions,
        "nn": torch._C._nn,
        "engine": torch._C._ImperativeEngine,
        "torch": torch,
        "torch._C": torch._C,
        "functional": torch.nn.functional,
        "Module": torch.nn.Module,
        "cuda": torch.cuda,
        "record_function": torch.autograd.profiler.record_function,
        "autograd": torch.autograd,
        "_tensor_str": torch._tensor_str,
        "amp": torch.amp,
        "os": os,
    }
    for owner, value in owners.items():
        names = getattr(value, "__dict__", None) or vars(type(value))
        for name in list(names):
            item = getattr(value, name) if owner == "functions" else names[name]
            if type(item).__name__ == "method-wrapper":
                continue  # made anew each time that it is asked for
            found[f"{owner}.{name}"] = id(item)
            kind = type(item).__name__
            if kind == "method_descriptor":
                found[f"{owner}.{name} in C"] = word(word(id(item) + 40) + 8)
            elif kind == "builtin_function_or_method":
                found[f"{owner}.{name} in C"] = word(word(id(item) + 16) + 8)
            elif kind == "wrapper_descriptor":
                found[f"{owner}.{name} in C"] = word(id(item) + 48)
    for kind in (*family(torch._C.TensorBase), torch.device, torch.Generator):
        slots = [word(id(kind) + at) for at in (48, 88, 120, 128, 136, 144, 152, 160, 200, 208, 216, 296, 312)]
        for table, size in ((96, 36), (104, 10), (112, 3)):
            address = word(id(kind) + table)
            slots += [word(address + 8 * at) for at in range(size)] if address else []
        found[f"slots of {kind.__module__}.{kind.__qualname__}"] = slots
    found["sys.meta_path"] = [id(finder) for finder in sys.meta_path]
    found["warnings"] = type(warnings.filters).__name__, id(vars(warnings)["_showwarnmsg"])
    found["modes"] = torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    return found


def family(kind: type) -> Iterator[type]:
    yield kind
    children: list[type] = type.__subclasses__(kind)
    for child in children:
        yield from family(child)
