"""`torch.ocl`: what PyTorch asks of a device's module, and what a user calls."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence

import pyopencl as cl
import torch
from torch.types import Device

from syncscope.errors import UserError
from syncscope.kernels import generator, memory_counts, queue, storage
from syncscope.kernels.capture import Graph, capture
from syncscope.kernels.device import Info, info
from syncscope.kernels.graphed import make_graphed_callables
from syncscope.kernels.memory_counts import *  # noqa: F403 - its __all__: the functions of memory

__all__ = ["Graph", "capture", "make_graphed_callables"]  # beside everything that is defined here
default_generators = (generator.current(),)
allow_tf32: bool | None = (
    None  # True or False before what PyTorch's settings say of products and convolutions (`precision`)
)
_initialized = True  # torch.utils.checkpoint asks, and restores no random numbers of a device that is not


def is_available() -> bool:
    """True: without a device the import fails."""
    return True


def is_initialized() -> bool:
    """True: the queue is made by the import."""
    return True


def init() -> None:
    """Nothing to do: the import has done it."""


def device_count() -> int:
    """One; which one, SYNCSCOPE_OCL_DEVICE says."""
    return 1


def current_device() -> int:
    """Zero."""
    return 0


def set_device(device: Device) -> None:
    """Accepts the one device there is.

    Raises:
        UserError: any other index.
    """
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, -1, 0):
        raise UserError(f"there is one ocl device, `ocl:0`, and no `ocl:{index}`", "SYNCSCOPE_OCL_DEVICE chooses which")


@contextlib.contextmanager
def device(which: Device) -> Iterator[None]:
    """A region in which `which` is the current device: there is only one."""
    set_device(which)
    yield


def get_device_name(device: Device = None) -> str:
    """The name the driver gives it."""
    return str(info().name)


def synchronize(device: Device = None) -> None:
    """Waits until the device has run everything queued."""
    queue.finish()


def get_device_properties(device: Device = None) -> Info:
    """What the driver says of it."""
    return info()


def manual_seed(seed: int) -> None:
    """Seeds the random numbers of the device."""
    generator.current().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the random numbers of all devices, that is, of the one."""
    generator.current().manual_seed(seed)


def seed() -> None:
    """Seeds the random numbers of the device with a number that nobody knows."""
    generator.current().seed()


def seed_all() -> None:
    """Those of all devices, that is, of the one."""
    generator.current().seed()


def initial_seed() -> int:
    """The seed last given."""
    return int(generator.current().initial_seed())


def get_rng_state(device: Device = None) -> torch.Tensor:
    """The state of the random numbers, a CPU byte tensor."""
    return generator.current().get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [generator.current().get_state()]


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    """Restores a state of the random numbers."""
    generator.current().set_state(new_state)


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Restores the states of all devices."""
    for state in new_states:
        generator.current().set_state(state)


def _get_generator(device: torch.device) -> torch.Generator:
    return generator.current()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What a region of `torch.autocast("ocl")` may cast to."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    """Stored as bfloat16, computed in float."""
    return True


def _is_in_bad_fork() -> bool:
    return queue.in_bad_fork()


def _lazy_call(call: Callable[[], object]) -> None:
    call()


class Event:
    """A point in the queue, with `enable_timing` timed by the device itself; `torch.Event` on this device measures nothing."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._marker: cl.Event | None = None
        self._timed = enable_timing
        if enable_timing:
            queue.keep_times()

    def record(self, stream: Stream | None = None) -> None:
        """Puts the point behind everything queued so far; returns at once."""
        self._marker = queue.marker()

    def query(self) -> bool:
        """Whether the device has passed it; True if it was never recorded."""
        return self._marker is None or self._marker.command_execution_status == cl.command_execution_status.COMPLETE

    def synchronize(self) -> None:
        """Waits until the device has passed it."""
        if self._marker is not None:
            self._marker.wait()

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: one queue, in order."""

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of the device's clock from this point to `end`, which the device must have passed.

        Raises:
            RuntimeError: one of them was not made for timing, not recorded, or not yet passed.
        """
        if not (self._timed and end._timed):
            raise RuntimeError(
                "both events must be made with enable_timing=True before the time between them can be read"
            )
        if self._marker is None or end._marker is None:
            raise RuntimeError("both events must be recorded before the time between them can be read")
        if not (self.query() and end.query()):
            raise RuntimeError("the device has not passed both events: call synchronize() first")
        return float(end._marker.profile.end - self._marker.profile.end) / 1e6


class Stream:
    """The one in-order queue, for code that names streams."""

    def __init__(self, device: Device = None, priority: int = 0) -> None:
        self.device = storage.device()

    def synchronize(self) -> None:
        """Waits until the device has run everything queued."""
        queue.finish()

    def query(self) -> bool:
        """Whether the device has run everything queued."""
        marker = queue.marker()
        return bool(marker.command_execution_status == cl.command_execution_status.COMPLETE)

    def record_event(self, event: Event | None = None) -> Event:
        """An event behind everything queued so far."""
        event = event or Event()
        event.record()
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing to do: one queue, in order."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to do: one queue, in order."""


def current_stream(device: Device = None) -> Stream:
    """The one queue."""
    return Stream()


def default_stream(device: Device = None) -> Stream:
    """The one queue."""
    return Stream()


def set_stream(stream: Stream) -> None:
    """Nothing to do: one queue."""


@contextlib.contextmanager
def stream(which: Stream | None) -> Iterator[None]:
    """A region on a stream: there is only one."""
    yield


_pinned: set[int] = set()  # addresses of CPU storages that were "pinned": bookkeeping, since we stage uploads anyway


def is_pinned(self: torch.Tensor, device: Device = None) -> bool:
    """Whether `pin_memory` made this CPU tensor."""
    return self.untyped_storage().data_ptr() in _pinned


def _pin_memory(self: torch.Tensor, device: Device = None) -> torch.Tensor:
    copy = torch.empty_like(self).copy_(self)
    address = copy.untyped_storage().data_ptr()
    _pinned.add(address)
    weakref.finalize(copy.untyped_storage(), _pinned.discard, address)
    return copy


def install() -> None:
    """The generic entry points that PyTorch would otherwise answer with its own stubs."""
    torch.accelerator.synchronize = synchronize
    memory_counts.install()
    generator.install()
    generator.default.manual_seed(torch.initial_seed())
