"""Copies of every kind: to the device, off it and within it, with casts, strides, broadcasting and complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from syncscope.kernels import elementwise, plans, queue, storage
from syncscope.kernels.operators import op

_FEW = 1 << 22  # elements that a kernel copies: what an operator launches is followed in C, and a driver's copy is not
_WORD = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def as_words(x: Tensor) -> Tensor | None:
    """The same bytes as integers, which any device can move; None for elements of other than 1, 2, 4 or 8 bytes."""
    if x.is_conj() or x.is_neg() or x.dtype.itemsize not in _WORD:
        return None
    return x.view(_WORD[x.dtype.itemsize])


def dense(tensor: Tensor) -> Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    if tensor.is_contiguous():
        return tensor
    return device_copy(tensor, storage.empty(tensor.shape, tensor.dtype))


def device_copy(source: Tensor, target: Tensor) -> Tensor:
    """Copies within the device, broadcasting and casting; gives the target."""
    if not target.numel():
        return target
    plain = not (source.is_conj() or source.is_neg() or target.is_conj() or target.is_neg())
    alike = plain and source.dtype == target.dtype
    if alike and source.shape == target.shape and source.is_contiguous() and target.is_contiguous():
        if source.data_ptr() == target.data_ptr():
            return target
        if not _share(source, target) and (target.numel() > _FEW or not elementwise.storable(source.dtype)):
            width = target.dtype.itemsize
            queue.copy(
                storage.buffer(source), source.storage_offset() * width,
                storage.buffer(target), target.storage_offset() * width, target.numel() * width,
            )  # fmt: skip
            return target
    if _share(source, target):
        # The two views may overlap: a kernel would read what it has written.
        source = device_copy(source, storage.empty(source.shape, source.dtype))
    if source.dtype.is_complex or target.dtype.is_complex:
        return _complex_copy(source, target)
    if source.is_neg() or target.is_neg():
        sign = source.is_neg() != target.is_neg()
        source = source._neg_view() if source.is_neg() else source
        bare = target._neg_view() if target.is_neg() else target
        device_copy(source, bare)
        if sign:
            bare.neg_()
        return target
    if elementwise.storable(source.dtype) and elementwise.storable(target.dtype):
        return elementwise.copy(target, source)
    if alike and (words := as_words(source)) is not None:
        elementwise.copy(target.view(words.dtype), words)
        return target
    return _through_host(source, target)


def _share(source: Tensor, target: Tensor) -> bool:
    return source.untyped_storage() is target.untyped_storage()


def _complex_copy(source: Tensor, target: Tensor) -> Tensor:
    """Real and imaginary parts as two tensors of real numbers; a conjugate is the negative of the latter."""
    sign = source.is_conj() != target.is_conj()
    source = source.conj() if source.is_conj() else source
    bare = target.conj() if target.is_conj() else target
    if not bare.dtype.is_complex:
        return device_copy(torch.view_as_real(source)[..., 0], bare)
    parts = torch.view_as_real(bare)
    if not source.dtype.is_complex:
        device_copy(source, parts[..., 0])
        parts[..., 1].zero_()
        return target
    device_copy(torch.view_as_real(source), parts)
    if sign:
        parts[..., 1].neg_()
    return target


def _through_host(source: Tensor, target: Tensor) -> Tensor:
    """For casts between dtypes that no kernel can load (float8, uint16...): the host waits, casts, and uploads."""
    name = "fallback of aten::copy_"
    host = storage.download(dense(source), name).to(target.dtype)
    return device_copy(storage.upload(host), target)


def _has_kernel(dtype: torch.dtype) -> bool:
    return elementwise.storable(dtype) or dtype.is_complex


# Operators like any other to plans.c: else their plans would be taken for those of operators that copy their arguments first.
_within = plans.followed(None, plans.kept(device_copy))


@op("_copy_from", keep=False)
def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """`target.copy_(source)`: to the device, within it, or off it (the host waits then, unless it asked not to)."""
    if not target.numel():
        return target
    if target.device.type != storage.NAME:
        return _to_host(source, target, non_blocking)
    if source.device.type == storage.NAME:
        odd = source.is_neg() or target.is_neg() or source.dtype.is_complex or target.dtype.is_complex
        return device_copy(source, target) if odd else _within(source, target)
    castable = _has_kernel(source.dtype) and _has_kernel(target.dtype)
    if source.dtype != target.dtype and (not castable or source.dtype.itemsize > target.dtype.itemsize):
        source = source.to(target.dtype)  # on the cheaper side of the bus
    if (
        source.dtype == target.dtype
        and source.shape == target.shape
        and target.is_contiguous()
        and not target.is_conj()
    ):
        staged = source.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        at = target.storage_offset() * target.dtype.itemsize
        queue.write(storage.host_bytes(staged), storage.buffer(target), at)
        return target
    return device_copy(storage.upload(source), target)


def _to_host(source: Tensor, target: Tensor, non_blocking: bool) -> Tensor:
    if source.dtype.itemsize > target.dtype.itemsize and _has_kernel(source.dtype) and _has_kernel(target.dtype):
        source = device_copy(source, storage.empty(source.shape, target.dtype))  # the cheaper side of the bus
    if source.is_conj() or source.is_neg() or not source.is_contiguous():
        source = device_copy(source, storage.empty(source.shape, source.dtype))
    if (
        source.dtype == target.dtype
        and source.shape == target.shape
        and target.is_contiguous()
        and not target.is_conj()
    ):
        where = (storage.buffer(source), source.storage_offset() * source.dtype.itemsize, storage.host_bytes(target))
        if non_blocking:
            queue.read_later(*where)
        else:
            queue.read(*where, "aten::copy_")
        return target
    return target.copy_(storage.download(source, "aten::copy_"))


@op("_copy_from_and_resize", keep=False)
def copy_from_and_resize(source: Tensor, target: Tensor) -> Tensor:
    """`_copy_from` into a target that takes the source's shape."""
    if target.shape != source.shape:
        target.resize_(source.shape)
    return copy_from(source, target)


def _cast(self: Tensor, dtype: torch.dtype) -> Tensor:
    """Within the device, as a region of autocast does with every parameter in every step."""
    return copy_from(self, torch.empty_like(self, dtype=dtype))


_cast = plans.followed(None, plans.kept(_cast))


@op("_to_copy", keep=False)
def to_copy(
    self: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """`tensor.to(...)`; PyTorch's own asks a pinned allocator for the host side of a non-blocking copy."""
    device = device or self.device
    odd = self.is_complex() or self.is_neg()
    here = device.type == self.device.type == storage.NAME
    if here and memory_format is None and dtype and not (odd or dtype.is_complex):
        return _cast(self, dtype)
    if device.type not in (storage.NAME, "cpu", "meta"):
        raise RuntimeError(f"a tensor on `ocl` cannot go to {device} directly: go through the CPU")
    layout = torch.preserve_format if memory_format is None else memory_format
    result = torch.empty_like(self, dtype=dtype, device=device, memory_format=layout)
    return result if device.type == "meta" else copy_from(self, result, non_blocking)
