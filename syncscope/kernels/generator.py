"""Where the device's random numbers come from: a seed and how many were drawn, as CUDA's generator has it.

A number is a function of the seed, of the element that it is for, and of how far the generator is: the device makes it from
these by Philox 4x32-10 (`cl/philox.cl`), whatever runs before or beside it. PyTorch makes a generator of another device in C++
alone, and hands a kernel no Python object but a new one around what it made in C++. So ours is a generator of the CPU to
PyTorch, known again by its address, and `torch.Generator(device="ocl")` is answered before PyTorch is asked.
"""

from __future__ import annotations

import ctypes
import os
import struct
import weakref
from collections.abc import Callable
from typing import Any

import torch

NAME = "ocl"
ENV = "SYNCSCOPE_RANDOM"  # "host": numbers are the CPU's, drawn there and uploaded
host = os.environ.get(ENV) == "host"
_STATE = "=QQ"  # as CUDA's: seed, numbers drawn so far
_SEED = 67280421310721  # where nobody has seeded, as everywhere in PyTorch
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_plain: Any = torch.Generator
_by_address: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()


class Draw(bytes):
    """What a kernel that draws is given: where its generator stood. Whoever launches it again lets the generator draw again."""

    generator: Generator
    ahead: int


class Generator(torch.Generator):
    """`torch.Generator(device="ocl")`; its state is 16 bytes, which CUDA's generator takes, too."""

    def __init__(self) -> None:
        self.stands = (ctypes.c_uint64 * 2)(_SEED, 0)  # plans.c reads and writes the default one's
        _by_address[self._cdata] = self

    @property
    def device(self) -> torch.device:
        """`ocl:0`."""
        return torch.device(NAME, 0)

    def draw(self, count: int) -> Draw:
        """For a kernel that draws at most `count` numbers in each of its streams; the next one goes on behind them."""
        made = Draw(bytes(self.stands))
        made.generator, made.ahead = self, -(-count // 4) * 4
        self.stands[1] += made.ahead
        return made

    def manual_seed(self, seed: int) -> Generator:
        """Begins anew from a seed.

        Raises:
            RuntimeError: it has more than 64 bits.
        """
        seed = int(seed)
        if not _LEAST <= seed <= _MOST:
            raise RuntimeError(f"Overflow when unpacking long long: the seed {seed} has more than 64 bits")
        super().manual_seed(seed)
        self.stands[:] = [seed & _MOST, 0]
        return self

    def seed(self) -> int:
        """Begins anew from a seed that nobody knows, and gives it."""
        seed = super().seed()
        self.stands[:] = [seed, 0]
        return int(seed)

    def initial_seed(self) -> int:
        """The seed it began from."""
        return int(self.stands[0])

    def get_offset(self) -> int:
        """How many numbers each stream has given."""
        return int(self.stands[1])

    def set_offset(self, offset: int) -> None:
        """Goes to a place of the streams.

        Raises:
            RuntimeError: it is no multiple of 4.
        """
        if offset % 4 or not 0 <= offset <= _MOST:
            raise RuntimeError("offset must be a multiple of 4")
        self.stands[1] = offset

    def get_state(self) -> torch.Tensor:
        """Its state, a CPU byte tensor."""
        if host:
            return super().get_state()
        return torch.frombuffer(bytearray(self.stands), dtype=torch.uint8).clone()

    def set_state(self, new_state: torch.Tensor) -> Generator:
        """Goes back to a state.

        Raises:
            RuntimeError: it is none of such a generator.
        """
        if host:
            super().set_state(new_state)
            return self
        if new_state.dtype != torch.uint8 or new_state.device.type != "cpu":
            raise RuntimeError("RNG state must be a torch.ByteTensor on the CPU")
        if new_state.numel() != struct.calcsize(_STATE):
            raise RuntimeError(
                f"RNG state is wrong size: {new_state.numel()} bytes, where that of ocl has {struct.calcsize(_STATE)}"
            )
        self.stands[:] = list(struct.unpack(_STATE, bytes(new_state.contiguous().numpy())))
        return self

    def clone_state(self) -> Generator:
        """Another one that stands where this one does."""
        return Generator().set_state(self.get_state())

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Goes to where another one stands."""
        return self.set_state(state.get_state())

    def __reduce__(self) -> tuple[Callable[[torch.Tensor], Generator], tuple[torch.Tensor]]:
        return _restored, (self.get_state(),)


def _restored(state: torch.Tensor) -> Generator:
    return Generator().set_state(state)


default = Generator()


def of(given: torch.Generator | None) -> Generator | None:
    """The device's generator behind what a kernel was given, by default the device's own; None where the CPU's numbers are
    wanted: they are drawn by `given` there, or by the default one."""
    if host:
        return None
    return default if given is None else _by_address.get(given._cdata)


def current() -> torch.Generator:
    """What `torch.ocl` seeds and saves: the device's own generator, or the CPU's where the CPU's numbers are wanted. Then a
    program that draws on both gets what it gets on the CPU alone.
    """
    return torch.default_generator if host else default


def on_host(given: torch.Generator | None) -> torch.Generator:
    """One that draws on the CPU: the one given, or in its place one that is seeded by the device's next number."""
    if host and (given is None or given._cdata == default._cdata):
        return torch.default_generator
    if given is not None and (host or given._cdata not in _by_address):
        return given
    ours = default if given is None else _by_address[given._cdata]
    seed, offset = struct.unpack(_STATE, ours.draw(4))
    return torch.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + offset) & _MOST)


def _asks_for_ours(device: str | int | torch.device | None = None) -> bool:
    return device is not None and not isinstance(device, int) and torch.device(device).type == NAME


def install() -> None:
    """Makes `torch.Generator(device="ocl")` give one of ours."""
    kind: Any = type(_plain)
    if kind is not type:  # from torch 2.13 on it has a metaclass, of Python
        plainly = kind.__call__

        def call(cls: type, *args: Any, **kwargs: Any) -> torch.Generator:
            return Generator() if cls is _plain and _asks_for_ours(*args, **kwargs) else plainly(cls, *args, **kwargs)

        kind.__call__ = call
        return

    class Kind(type):
        """Before, a class takes its name that makes what it is asked for, and that every generator is an instance of."""

        def __call__(cls, *args: Any, **kwargs: Any) -> torch.Generator:
            return Generator() if _asks_for_ours(*args, **kwargs) else _plain(*args, **kwargs)

        def __instancecheck__(cls, x: object) -> bool:
            return isinstance(x, _plain)

        def __subclasscheck__(cls, x: type) -> bool:
            return issubclass(x, _plain)

    torch.Generator = Kind("Generator", (), {"__doc__": _plain.__doc__, "__module__": "torch"})
