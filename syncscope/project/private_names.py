"""Names of functions that stand for nobody else to call, and those that Python or a library calls by itself."""

from __future__ import annotations

_OF_PYTHON = frozenset(
    "__post_init__ __init_subclass__ __class_getitem__ __set_name__ __length_hint__ __reduce_ex__ __getnewargs_ex__".split()
)
_OF_PROTOCOLS = ("__torch_", "__tensor_", "__array", "__cuda_", "__dlpack", "__pydantic_", "__attrs_", "__jax_")


def is_special(name: str) -> bool:
    """Whether Python or a library calls a method of this name by itself: `__init_model__` is somebody's own."""
    known = name in _OF_PYTHON or "_" not in name.strip("_") or name.startswith(_OF_PROTOCOLS)
    return known and name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Whether the callers of a function are all in its own file, most likely."""
    return name.startswith("_") and not is_special(name)
