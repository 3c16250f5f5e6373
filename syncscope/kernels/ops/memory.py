"""Making tensors, viewing them, copying them between host and device, and reading one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from syncscope.errors import UserError
from syncscope.kernels import queue, storage
from syncscope.kernels.operators import native, op
from syncscope.kernels.ops import pointwise

Size = Sequence[int]


def _check(device: torch.device | None) -> None:
    if device is not None and device.index not in (None, 0):
        raise UserError(
            f"there is one ocl device, `ocl:0`, and no `{device}`", "SYNCSCOPE_OCL_DEVICE chooses which one"
        )


@op("empty.memory_format")
def empty(
    size: Size,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """A new tensor; its content is undefined."""
    _check(device)
    stride = None
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
    return storage.empty(size, dtype or torch.get_default_dtype(), stride)


@op("empty_strided")
def empty_strided(
    size: Size,
    stride: Size,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """A new tensor of given strides; its content is undefined."""
    _check(device)
    return storage.empty(size, dtype or torch.get_default_dtype(), stride)


def _metadata_only(name: str) -> None:
    """PyTorch's CPU kernel only touches sizes and strides, so it serves us too."""
    kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
    native[name] = lambda *args, **kwargs: kernel.call_boxed(storage.CPU_KEYS, *args, **kwargs)


for _name in (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
):
    _metadata_only(_name)


@op("set_.source_Storage")
def set_source_storage(self: torch.Tensor, source: torch.UntypedStorage) -> torch.Tensor:
    """Views the whole of a storage."""
    return self.set_(source, 0, [source.nbytes() // self.dtype.itemsize])


@op("set_")
def set_empty(self: torch.Tensor) -> torch.Tensor:
    """Leaves a tensor of no elements."""
    return self.set_(storage.untyped(0), 0, [0], [1])


@op("resize_")
def resize_(self: torch.Tensor, size: Size, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Gives a tensor another shape, in place; new elements are undefined."""
    if list(self.shape) == list(size):
        return self
    return storage.resize(self, size)


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    if tensor.is_contiguous():
        return tensor
    result = storage.empty(tensor.shape, tensor.dtype)
    return device_copy(tensor, result)


def device_copy(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Copies within the device, broadcasting and casting."""
    if not target.numel():
        return target
    same = source.dtype == target.dtype and source.shape == target.shape
    if same and source.is_contiguous() and target.is_contiguous() and source.is_conj() == target.is_conj():
        width = target.dtype.itemsize
        if source.data_ptr() == target.data_ptr():
            return target
        queue.copy(
            storage.buffer(source),
            source.storage_offset() * width,
            storage.buffer(target),
            target.storage_offset() * width,
            target.numel() * width,
        )
        return target
    if source.untyped_storage() is target.untyped_storage() and source.data_ptr() != target.data_ptr():
        # The two views may overlap: a kernel would read what it has written.
        fresh = storage.empty(source.shape, source.dtype)
        pointwise.copy(fresh, source)
        source = fresh
    return pointwise.copy(target, source)


@op("_copy_from")
def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`target.copy_(source)`: to the device, within it, or off it (the host waits then, unless it asked not to)."""
    if not target.numel():
        return target
    if target.device.type != storage.NAME:
        return _to_host(source, target, non_blocking)
    if source.device.type != storage.NAME:
        if source.dtype.itemsize > target.dtype.itemsize or not _castable(source.dtype, target.dtype):
            source = source.to(target.dtype)
        if source.dtype == target.dtype and source.shape == target.shape and target.is_contiguous():
            staged = source.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
            queue.write(
                storage.host_bytes(staged), storage.buffer(target), target.storage_offset() * target.dtype.itemsize
            )
            return target
        source = storage.upload(source)
    if not _castable(source.dtype, target.dtype):
        return _through_host(source, target)
    return device_copy(source, target)


def _castable(source: torch.dtype, target: torch.dtype) -> bool:
    return (pointwise.storable(source) and pointwise.storable(target)) or (source == target and source.itemsize <= 8)


def _through_host(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """For dtypes that no kernel can load: complex numbers and the like."""
    host = storage.download(_dense_bytes(source), "fallback of aten::copy_").to(target.dtype)
    if host.shape != target.shape:
        host = host.expand(target.shape)
    if target.is_contiguous():
        return copy_from(host, target)
    whole = _whole_storage(target)
    whole.copy_(host)
    extent = storage.extent(whole.shape, whole.stride())
    flat = torch.as_strided(whole, (extent,), (1,), 0)
    width = target.dtype.itemsize
    queue.write(storage.host_bytes(flat), storage.buffer(target), target.storage_offset() * width)
    return target


def _whole_storage(target: torch.Tensor) -> torch.Tensor:
    """A host tensor of the same strides with all bytes between the elements as they are on the device."""
    width = target.dtype.itemsize
    extent = storage.extent(target.shape, target.stride())
    flat = torch.empty(extent, dtype=target.dtype)
    queue.read(
        storage.buffer(target), target.storage_offset() * width, storage.host_bytes(flat), "fallback of aten::copy_"
    )
    return torch.as_strided(flat, target.shape, target.stride())


def _dense_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_contiguous() else dense(tensor)


def _to_host(source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> torch.Tensor:
    if (
        source.dtype != target.dtype
        and source.dtype.itemsize > target.dtype.itemsize
        and _castable(source.dtype, target.dtype)
    ):
        source = device_copy(source, storage.empty(source.shape, target.dtype))
    conj = source.is_conj()
    if not source.is_contiguous():
        if pointwise.storable(source.dtype):
            source = dense(source)
        else:
            target.copy_(_strided_to_host(source))
            return target
    width = source.dtype.itemsize
    if source.dtype == target.dtype and source.shape == target.shape and target.is_contiguous() and not conj:
        where = (storage.buffer(source), source.storage_offset() * width, storage.host_bytes(target))
        if non_blocking:
            queue.read_later(*where)
        else:
            queue.read(*where, "aten::copy_")
        return target
    host = storage.download(source, "aten::copy_")
    target.copy_(host.conj() if conj else host)
    return target


def _strided_to_host(source: torch.Tensor) -> torch.Tensor:
    """For dtypes that no kernel can load: the whole range of memory, viewed on the host."""
    width = source.dtype.itemsize
    flat = torch.empty(storage.extent(source.shape, source.stride()), dtype=source.dtype)
    queue.read(storage.buffer(source), source.storage_offset() * width, storage.host_bytes(flat), "aten::copy_")
    host = torch.as_strided(flat, source.shape, source.stride())
    return host.conj() if source.is_conj() else host


@op("_copy_from_and_resize")
def copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """`_copy_from` into a target that takes the source's shape."""
    if target.shape != source.shape:
        target.resize_(source.shape)
    return copy_from(source, target)


@op("_to_copy")
def to_copy(
    self: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """`tensor.to(...)`; PyTorch's own asks a pinned allocator for the host side of a non-blocking copy."""
    device = device or self.device
    format = torch.preserve_format if memory_format is None else memory_format
    if device.type not in (storage.NAME, "cpu"):
        raise RuntimeError(f"a tensor on `ocl` cannot go to {device} directly: go through the CPU")
    result = torch.empty_like(self, dtype=dtype, device=device, memory_format=format)
    copy_from(self, result, non_blocking)
    return result


@op("_local_scalar_dense")
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


@op("fill_.Scalar")
def fill_scalar(self: torch.Tensor, value: Any) -> torch.Tensor:
    """Sets every element to a number."""
    if self.numel():
        if self.is_contiguous() and self.dtype in _PATTERN and not isinstance(value, complex):
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
