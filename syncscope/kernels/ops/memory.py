"""Making tensors, filling and viewing them, and reading one number."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch
from torch.types import Number

from syncscope.errors import UserError
from syncscope.kernels import queue, storage
from syncscope.kernels.operators import op, views
from syncscope.kernels.ops.copying import as_words, copy_from
from syncscope.kernels.programs import C_TYPE, kernel

Size = Sequence[int]


def check(device: torch.device | None) -> None:
    """That a device is the one there is.

    Raises:
        UserError: it is another.
    """
    if device is not None and device.index not in (None, 0):
        raise UserError(
            f"there is one ocl device, `ocl:0`, and no `{device}`", "SYNCSCOPE_OCL_DEVICE chooses which one"
        )


@op("empty.memory_format")
def empty(
    size: Size,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """A new tensor; its content is undefined."""
    check(device)
    stride = None
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
    return storage.empty(size, dtype or torch.get_default_dtype(), stride)


@op("empty_strided")
def empty_strided(
    size: Size,
    stride: Size,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """A new tensor of given strides; its content is undefined."""
    check(device)
    return storage.empty(size, dtype or torch.get_default_dtype(), stride)


for _name in (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
):
    # PyTorch's CPU kernel only touches sizes and strides, so it serves us too.
    views[_name] = functools.partial(torch.library.get_kernel(f"aten::{_name}", "CPU").call_boxed, storage.CPU_KEYS)


@op("set_.source_Storage", keep=False)
def set_source_storage(self: torch.Tensor, source: torch.UntypedStorage) -> torch.Tensor:
    """Views the whole of a storage."""
    return self.set_(source, 0, [source.nbytes() // self.dtype.itemsize])


@op("set_", keep=False)
def set_empty(self: torch.Tensor) -> torch.Tensor:
    """Leaves a tensor of no elements."""
    return self.set_(storage.untyped(0), 0, [0], [1])


@op("resize_", keep=False)
def resize_(self: torch.Tensor, size: Size, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Gives a tensor another shape, in place; new elements are undefined."""
    if list(self.shape) == list(size):
        return self
    return storage.resize(self, size)


@op("_local_scalar_dense", keep=False)
def local_scalar_dense(self: torch.Tensor) -> int | float | bool | complex:
    """The one element, as a Python number: the host waits."""
    number: int | float | bool | complex = storage.download(self, "aten::_local_scalar_dense").item()
    return number


_PATTERN = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.int16: np.int16,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
    torch.bool: np.bool_,
    torch.float16: np.float16,
}
_FEW = 1 << 22  # elements that a kernel fills: what an operator launches is followed in C, and a driver's fill is not
_GROUP = 128


@op("fill_.Scalar")
def fill_scalar(self: torch.Tensor, value: Number) -> torch.Tensor:
    """Sets every element to a number."""
    words = as_words(self) if self.is_contiguous() and self.numel() <= _FEW else None
    if not self.numel():
        return self
    if words is not None:
        bits = torch.full((), value, dtype=self.dtype).view(words.dtype).item()
        queue.launch(
            kernel("placed", "fill", T=C_TYPE[words.dtype]), (-(-self.numel() // _GROUP) * _GROUP,), (_GROUP,),
            storage.buffer(self), self.storage_offset(), bits, self.numel(),
        )  # fmt: skip
    elif self.is_contiguous() and self.dtype in _PATTERN and not isinstance(value, complex):
        width = self.dtype.itemsize
        pattern = torch.full((), value, dtype=self.dtype).numpy()[()]
        queue.fill(storage.buffer(self), pattern, self.storage_offset() * width, self.numel() * width)
    else:
        copy_from(torch.full((), value, dtype=self.dtype).expand(self.shape), self)
    return self


@op("fill_.Tensor")
def fill_tensor(self: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Sets every element to a tensor of one element."""
    return self.copy_(value.expand(self.shape))


@op("zero_")
def zero_(self: torch.Tensor) -> torch.Tensor:
    """Sets every element to zero."""
    return fill_scalar(self, 0)
