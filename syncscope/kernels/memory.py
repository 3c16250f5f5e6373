"""Device memory: pooled buffers, each with a range of addresses that nothing else in the process has."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

import pyopencl as cl
import torch

from syncscope.kernels import generator, in_c, queue
from syncscope.kernels.device import context, device, is_gpu

_RESERVED = (1 << 40, 1 << 30)  # bytes of address space, not of memory; the second where a process may not have so much
_MAP_NORESERVE = 0x4000

Pool = defaultdict[int, list["Block"]]  # size of the class -> free blocks; list operations are atomic
ROOM = int(device.global_mem_size)  # bytes
_free: Pool = defaultdict(list)  # where memory is taken from
_common = _free
lenders: list[Callable[[Lease], None]] = []  # are told of everything that is lent
told: Callable[[int, int], None] | None = (
    None  # of what is lent and comes back: its address, and bytes, less than 0 if back
)
_lock = threading.Lock()
_next = 0
_end = 0
held = 0  # bytes of all blocks, in use or free
most_held = 0
in_use = 0  # bytes asked for by live storages
peak = 0


class Block:
    """A buffer of a size of the pool, and the address that stands for it on the host."""

    __slots__ = ("address", "buffer", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size)
        self.address = _reserve(size)
        if in_c.module is not None:
            in_c.module.know(self.address, size, self.buffer.int_ptr, self)

    def __del__(self) -> None:
        if in_c.module is not None and hasattr(self, "address"):
            in_c.module.drop(self.address)


class Lease:
    """A block as long as a storage lives; then it returns to the pool.

    Safe while kernels that use it are in flight: the queue is in order, so whoever gets it next comes after them.
    """

    __slots__ = ("block", "buffer", "home", "size")

    def __init__(self, block: Block, size: int, home: Pool) -> None:
        self.size = size
        self.home = home
        self.buffer = block.buffer
        self.block = block

    def __del__(self) -> None:
        # May run on any thread at any time: no lock, no OpenCL. In C where that is: what Ctrl-C raises in here is lost.
        global in_use
        in_use -= self.size
        if (tell := told) is not None:  # asked once: who listens may end meanwhile
            tell(self.block.address, -self.size)
        self.home[self.block.size].append(self.block)


def lease(size: int) -> Lease:
    """Memory for `size` bytes; its content is undefined.

    Raises:
        torch.OutOfMemoryError: the device has no room, even after the pool was emptied.
    """
    global in_use, peak
    queue.refuse_fork()
    blocks = _free[rounded := size_class(size)]
    try:
        block = blocks.pop()
    except IndexError:
        block = _new(rounded)
    in_use += size
    if in_use > peak:
        peak = in_use
    made = Lease(block, size, _free)
    if (tell := told) is not None:
        tell(block.address, size)
    for lender in lenders:
        lender(made)
    return made


def new_pool() -> Pool:
    """A pool that lends to nobody who did not ask for it; its memory goes to the common one when it dies."""
    return _OwnPool(list)


class _OwnPool(defaultdict[int, list[Block]]):
    def __del__(self) -> None:
        for size, blocks in self.items():
            _common[size].extend(blocks)


@contextlib.contextmanager
def taken_from(pool: Pool) -> Iterator[None]:
    """A region in which new storages have memory of this pool."""
    global _free
    before, _free = _free, pool
    try:
        yield
    finally:
        _free = before


def empty_cache() -> None:
    """Gives the blocks that no storage uses back to the driver."""
    global held
    for blocks in list(_free.values()):
        while blocks:
            held -= blocks.pop().size


@functools.lru_cache(4096)
def size_class(size: int) -> int:
    """The next size of the pool: quarter steps between powers of two, so that at most a fifth is wasted; 256 at least."""
    if size <= 256:
        return 256
    step = 1 << max((size - 1).bit_length() - 3, 8)
    return -(-size // step) * step


def _new(size: int) -> Block:
    global held, most_held
    for attempt in (1, 2):
        try:
            if size > device.max_mem_alloc_size:
                raise cl.MemoryError("above the device's largest allocation")
            if held + size > ROOM:  # drivers promise more than there is, and fail at a launch
                raise cl.MemoryError("above the device's memory")
            block = Block(size)
        except cl.Error as error:
            if attempt == 1:
                queue.finish()
                empty_cache()
                continue
            raise torch.OutOfMemoryError(
                f"ocl: cannot allocate {size / 2**20:.0f} MiB; {in_use / 2**20:.0f} MiB are in use, "
                f"the device has {ROOM / 2**20:.0f} MiB, "
                f"at most {device.max_mem_alloc_size / 2**20:.0f} MiB in one piece"
            ) from error
        held += size
        most_held = max(most_held, held)
        return block
    raise AssertionError("unreachable")


def _reserve(size: int) -> int:
    """Addresses in a mapping without access: unique, free of charge, and a stray host access faults instead of corrupting."""
    global _next, _end
    with _lock:
        if _next + size > _end:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            for room in (max(size, wanted) for wanted in _RESERVED):
                start = libc.mmap(None, room, 0, flags, -1, 0)  # protection 0 is PROT_NONE
                if start != ctypes.c_void_p(-1).value:
                    break
            else:
                raise OSError(ctypes.get_errno(), "cannot reserve address space for the device `ocl`")
            _next, _end = start, start + room
        _next += size
        return _next - size


class Owner:
    """The `lease` of a storage that plans.c made: the block that its elements are in, which the storage itself gives back."""

    def __get__(self, storage: torch.UntypedStorage, owner: type) -> Block:
        ours = storage.device.type == "ocl"
        block: Block | None = in_c.module.block(storage.data_ptr()) if ours else None
        if block is None:
            raise AttributeError("lease")
        return block


if in_c.module is not None:
    Lease.__del__ = in_c.module.lease_is_gone  # type: ignore[method-assign]
    in_c.begin(globals(), vars(queue), queue.KEPT, ctypes.addressof(generator.default.stands))
    in_c.module.submit(is_gpu)  # PoCL takes a microsecond for a launch, and needs the processor
    torch.UntypedStorage.lease = Owner()
