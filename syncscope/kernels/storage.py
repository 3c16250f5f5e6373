"""Plain tensors whose memory is a cl.Buffer.

A storage is made of an address and a size; the lease of its buffer hangs on it as an attribute. PyTorch keeps that Python
object as long as the C++ storage lives, so all views see the same buffer, and it goes back to the pool with the last of them.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import torch

from syncscope.kernels import queue
from syncscope.kernels.memory import Lease, lease

NAME = "ocl"
Copying = Callable[[torch.UntypedStorage], torch.UntypedStorage]
Reducing = Callable[[torch.TypedStorage], tuple[object, ...]]
CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_set = torch.ops.aten.set_.source_Storage_storage_offset._handle.redispatch_boxed
_shell = torch._C._acc.create_empty_tensor
_construct = torch._C._construct_storage_from_data_pointer
_NONE = [0]
_device: list[
    torch.device
] = []  # made by register(): a device made before the backend has its name never equals one made after


def name_the_device() -> None:
    """Called once, after PyTorch knows the name."""
    _device.append(torch.device(NAME, 0))


def device() -> torch.device:
    """`ocl:0`; always with an index, because `ocl` is unequal to it."""
    return _device[0]


def untyped(size: int) -> torch.UntypedStorage:
    """A storage of `size` bytes on the device; its content is undefined."""
    return over(lease(size))


def over(memory: Lease) -> torch.UntypedStorage:
    """A storage of memory that was lent."""
    storage = _construct(memory.block.address, _device[0], memory.size)
    storage.lease = memory
    return storage


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to the last that a layout touches, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def contiguous_stride(shape: Sequence[int]) -> list[int]:
    """Strides, in elements, of a row-major layout."""
    stride = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        stride[i] = stride[i + 1] * max(shape[i + 1], 1)
    return stride


def empty(shape: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor on the device; row-major unless strides are given; its content is undefined."""
    if stride is None:
        return row_major(tuple(shape), dtype).make()
    return Layout(shape, stride, dtype).make()


@functools.lru_cache(4096)
def row_major(shape: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """The layout of a row-major tensor."""
    return Layout(shape, contiguous_stride(shape), dtype)


# A DLManagedTensor of dlpack.h: data; device type and number; dimensions; code, bits and lanes of an element; addresses of
# shape and strides; offset; whose it is; what frees it. PyTorch copies all but the last, and asks for that as the tensor dies.
_FORM = "=QiiiBBHQQQQQ"
_OUR_DEVICE = (12, 0)  # kDLExtDev
CODES = {
    torch.float32: 2, torch.float64: 2, torch.float16: 2, torch.bfloat16: 4, torch.bool: 6, torch.uint8: 1,
    torch.int8: 0, torch.int16: 0, torch.int32: 0, torch.int64: 0,
}  # fmt: skip
_form = ctypes.create_string_buffer(struct.calcsize(_FORM))  # the one that all tensors are made with, never freed
_FORM_NAME = ctypes.create_string_buffer(b"dltensor")
_new_capsule, _set_name = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_SetName
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_void_p)
_FORM_NAME_AT = ctypes.addressof(_FORM_NAME)
_capsule = _new_capsule(ctypes.addressof(_form), _FORM_NAME_AT, None)
_from_dlpack = torch._C._from_dlpack
_making = threading.Lock()


class Layout:
    """What a tensor is besides its elements: shape, strides, dtype, and bytes from its first element to its last."""

    __slots__ = ("_code", "_lists", "dtype", "shape", "size", "stride")

    def __init__(self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> None:
        self.shape, self.stride, self.dtype = shape, stride, dtype
        self.size = extent(shape, stride) * dtype.itemsize
        self._code: tuple[int, ...] | None = None
        rank = len(shape)
        if dtype in CODES:
            self._lists = (ctypes.c_int64 * (2 * rank))(*shape, *stride)
            lists = ctypes.addressof(self._lists)
            self._code = (*_OUR_DEVICE, rank, CODES[dtype], 8 * dtype.itemsize, 1, lists, lists + 8 * rank, 0, 0, 0)

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """That of a tensor, whatever device it is on."""
        return cls(tensor.shape, tensor.stride(), tensor.dtype)

    def make(self, memory: Lease | None = None) -> torch.Tensor:
        """A tensor of this layout on the device, in new memory or in what was lent for it; its content is undefined.

        DLPack is the door of PyTorch through which a tensor comes in 3 us; `set_` takes 10.
        """
        if memory is None:
            memory = lease(self.size)
        if self._code is None:
            return self.on(over(memory), 0)
        with _making:
            struct.pack_into(_FORM, _form, 0, memory.block.address, *self._code)
            _set_name(_capsule, _FORM_NAME_AT)
            tensor: torch.Tensor = _from_dlpack(_capsule)
        tensor.untyped_storage().lease = memory
        return tensor

    def on(self, storage: torch.UntypedStorage, offset: int) -> torch.Tensor:
        """A tensor of this layout, whose elements begin so far into a storage."""
        tensor = _shell(_NONE, self.dtype)
        _set(CPU_KEYS, tensor, storage, offset, self.shape, self.stride)
        return tensor


def element(tensor: torch.Tensor, k: int) -> torch.Tensor:
    """Element `k` of a row-major tensor, as a view of no dimension."""
    view = _shell(_NONE, tensor.dtype)
    _set(CPU_KEYS, view, tensor.untyped_storage(), tensor.storage_offset() + k, (), ())
    return view


def buffer(tensor: torch.Tensor) -> cl.Buffer:
    """The cl.Buffer under a tensor; its first element is `tensor.storage_offset()` elements in.

    Raises:
        RuntimeError: the tensor is on another device.
    """
    try:
        return tensor.untyped_storage().lease.buffer
    except AttributeError:
        raise elsewhere(tensor) from None


def elsewhere(tensor: torch.Tensor) -> RuntimeError:
    """The error for a tensor of another device among ours, in PyTorch's words."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {_device[0]} and {tensor.device}!"
    )


def resize(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Gives an output its shape. What needs more room gets a new storage: older views keep the old one."""
    stride = contiguous_stride(shape)
    storage = tensor.untyped_storage()
    if (tensor.storage_offset() + extent(shape, stride)) * tensor.dtype.itemsize > storage.nbytes():
        grown = untyped((tensor.storage_offset() + extent(shape, stride)) * tensor.dtype.itemsize)
        if storage.nbytes():
            queue.copy(storage.lease.buffer, 0, grown.lease.buffer, 0, storage.nbytes())
        storage = grown
    _set(CPU_KEYS, tensor, storage, tensor.storage_offset(), list(shape), stride)
    return tensor


def host_bytes(tensor: torch.Tensor) -> npt.NDArray[np.generic]:
    """The bytes of a contiguous CPU tensor, shared."""
    flat = torch.as_strided(tensor.detach(), (tensor.numel(),), (1,))  # a size of one may hide any stride
    array: npt.NDArray[np.generic] = flat.view(torch.uint8).numpy()
    return array


def upload(source: torch.Tensor) -> torch.Tensor:
    """A row-major copy of a CPU tensor on the device; the host does not wait, and may change the source at once."""
    staged = source.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    result = empty(staged.shape, staged.dtype)
    if staged.numel():
        queue.write(host_bytes(staged), buffer(result), 0)
    return result


def download(source: torch.Tensor, operator: str) -> torch.Tensor:
    """A CPU copy of a tensor whose elements lie row-major in the buffer; the host waits."""
    result = torch.empty(source.shape, dtype=source.dtype, device="cpu")
    if source.numel():
        queue.read(buffer(source), source.storage_offset() * source.dtype.itemsize, host_bytes(result), operator)
    return result


def _clone_storage(self: torch.UntypedStorage, _plain: Copying = torch.UntypedStorage.clone) -> torch.UntypedStorage:
    """PyTorch's own would construct a storage with an allocator that we cannot register from Python, and crash."""
    if self.device.type != NAME:
        return _plain(self)
    copy = untyped(self.nbytes())
    if self.nbytes():
        queue.copy(self.lease.buffer, 0, copy.lease.buffer, 0, self.nbytes())
    return copy


def _tag(storage: torch.UntypedStorage) -> str | None:
    return NAME if storage.device.type == NAME else None


def _deserialize(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    if not location.startswith(NAME):
        return None
    result = untyped(storage.nbytes())
    if storage.nbytes():
        host = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
        queue.write(host_bytes(host), result.lease.buffer, 0)
    return result


def _storage_to_cpu(self: torch.UntypedStorage, _plain: Copying = torch.UntypedStorage.cpu) -> torch.UntypedStorage:
    """torch.save reads whole storages this way."""
    if self.device.type != NAME:
        return _plain(self)
    host = torch.empty(self.nbytes(), dtype=torch.uint8)
    if self.nbytes():
        queue.read(self.lease.buffer, 0, host.numpy(), "storage.cpu")
    return host.untyped_storage()


def _reduce_typed(
    self: torch.TypedStorage, _plain: Reducing = torch.storage.TypedStorage.__reduce__
) -> tuple[object, ...]:
    """Plain pickle writes storages this way; PyTorch's own would read our memory through its address."""
    if self._untyped_storage.device.type != NAME:
        return _plain(self)
    return _rebuild_typed, (bytes(self._untyped_storage.cpu()), self.dtype)


def _rebuild_typed(data: bytes, dtype: torch.dtype) -> torch.TypedStorage:
    memory = untyped(len(data))
    if data:
        queue.write(np.frombuffer(data, np.uint8), memory.lease.buffer, 0)
    return torch.storage.TypedStorage(wrap_storage=memory, dtype=dtype, _internal=True)


def install() -> None:
    """Teaches deepcopy, pickle, torch.save and torch.load our storages."""
    torch.UntypedStorage.clone = _clone_storage
    torch.UntypedStorage.cpu = _storage_to_cpu
    torch.storage.TypedStorage.__reduce__ = _reduce_typed
    torch.serialization.register_package(5, _tag, _deserialize)
