"""views.c, where it can be used: views are made there without Python, which took longer than what they are made of."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

from syncscope import native
from syncscope.errors import UserError
from syncscope.kernels import in_c

_OVERLOADS = frozenset(("as_strided", "view", "_reshape_alias"))
# In the order in which views.c has them. The latter, C++, are named with the types of what they take: if PyTorch changes those
# there is no such name, and views are made in Python.
_FUNCTIONS = (
    "torch_list_size", "torch_list_get_item", "torch_delete_list", "aoti_torch_new_uninitialized_tensor",
    "aoti_torch_delete_tensor_object", "_ZdlPv", "aoti_torch_library_init_impl", "torch_library_impl",
    "aoti_torch_abi_version",
    "_ZN2at6native21as_strided_tensorimplERKNS_6TensorEN3c108ArrayRefIlEES6_St8optionalIlE",
    "_ZN2at6native4viewERKNS_6TensorEN3c108ArrayRefIlEE",
    "_ZN2at6native14_reshape_aliasERKNS_6TensorEN3c108ArrayRefIlEES6_",
)  # fmt: skip


def install() -> frozenset[str]:
    """Once per process; the overloads that are registered now: none without a compiler, or with another PyTorch."""
    if in_c.module is None:
        return frozenset()
    try:
        library = ctypes.CDLL(torch._C.__file__)  # what it is linked to is found through it
        addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in _FUNCTIONS]
        ours = ctypes.CDLL(str(native.built(Path(__file__).with_name("views.c"), "-fexceptions")))
    except (AttributeError, OSError, UserError):
        return frozenset()
    refused = ours.begin((ctypes.c_void_p * len(addresses))(*addresses))
    return frozenset() if refused else _OVERLOADS
