"""PyTorch's questions about the device, answered in C: `guard.h` says why."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import torch

from syncscope.kernels import in_c

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"  # libc10's: a guard's address for each type of device
_HEADER = Path(torch.__file__).parent / "include/c10/core/impl/DeviceGuardImplInterface.h"
_CLASS = re.compile(r"^struct \w+ DeviceGuardImplInterface \{$(.*?)^\};$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VIRTUAL = re.compile(r"\bvirtual\b[^;{(]*?(~?\b\w+)\(")
_ANSWERED = ("type", "exchangeDevice", "getDevice", "getStream", "exchangeStream")


def functions(header: str) -> tuple[str, ...] | None:
    """The virtual functions of a guard in the order of its table; None where this PyTorch's header is unlike those we know.

    Compilers for Linux keep that order, and the destructor, which comes last, twice (Itanium C++ ABI, 2.5.2).
    """
    declared = _CLASS.search(header)
    code = _COMMENT.sub("", declared[1]) if declared else ""
    names = tuple(_VIRTUAL.findall(code))
    known = names[:1] == ("type",) and names[-1:] == ("~DeviceGuardImplInterface",)
    known = known and len(names) == len(re.findall(r"\bvirtual\b", code))
    return (*names, names[-1]) if known and all(names.count(name) == 1 for name in _ANSWERED) else None


def install() -> bool:
    """Puts C's answers into the guard that PyTorch was given; whether it could."""
    if in_c.module is None:
        return False
    try:
        registry = ctypes.c_void_p.in_dll(ctypes.CDLL(torch._C.__file__), _REGISTRY)
        names = functions(_HEADER.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no header, or no such name
        return False
    if names is None:
        return False
    kind = int(torch._C._autograd.DeviceType.PrivateUse1)
    in_c.module.guard(ctypes.addressof(registry) + kind * ctypes.sizeof(ctypes.c_void_p), kind, names)
    return True
