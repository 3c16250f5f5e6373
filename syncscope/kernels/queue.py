"""The one door to the device: every enqueue and every wait of the host passes here, in one in-order queue.

The queue keeps the device's times only while somebody observes: NVIDIA's driver takes 6 us more for each launch then.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic, monotonic_ns
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import torch

from syncscope.kernels import coming, generator, in_c
from syncscope.kernels.coming import Coming
from syncscope.kernels.device import context

Argument: TypeAlias = cl.Buffer | float | bytes | np.generic  # of a kernel: memory, a number, or the bytes of a struct
Command = tuple[Callable[..., None], tuple[Any, ...]]  # a function of this module that enqueues, and its arguments
Observer = Callable[[str, int, int, tuple[object, ...], dict[str, object], object], None]
Reader = Callable[[str, int, int, int], None]

# At the end of every operator that the device ran, on the thread that ran it: its name, its start (ns of time.monotonic_ns),
# how it ran (below), arguments and result: to look at, not to keep, or their memory would stay. The end is the observer's to
# take. Operators called by an operator report too, and nest in time.
observers: list[Observer] = []
AS_KNOWN, ON_CPU, ANEW = 0, 1, 2  # of a call that looks like none before is worked out anew what it launches
# After every wait of the host for bytes: the operator that read, the bytes, host start and end.
readers: list[Reader] = []

# Are told of everything that is enqueued, as a function of this module and its arguments, and of waits before they begin.
recorders: list[Callable[..., None]] = []
launches = 0  # kernels enqueued in this process
_queue = cl.CommandQueue(context)
_timed = False  # whether the queue keeps the device's times
_always_timed = False  # somebody holds events that he will ask for them
# A GPU's driver may keep back what it was given until the host waits, and the device idles meanwhile: NVIDIA's does so for
# milliseconds. After so many kernels it is reminded to begin. PoCL begins at once, and a reminder costs it 20 us.
KEPT = 32 if context.devices[0].type & cl.device_type.GPU else 1 << 62
_lock = threading.RLock()  # a kernel object holds its arguments: setting and enqueuing must not be torn apart
# Dropping the event of an unfinished write would wait for it: they rest here, with the host memory they read from.
_writes: deque[tuple[cl.Event, npt.NDArray[np.generic]]] = deque()
forked: list[bool] = []  # whether this is a child process that inherited the queue


def in_bad_fork() -> bool:
    """Whether this is a child process that inherited the queue; OpenCL does not survive a fork."""
    return bool(forked)


def refuse_fork() -> None:
    """Raises an error that says what to do, in a child process: a GPU's driver called there ends it, or never answers."""
    if forked:
        raise RuntimeError(
            "cannot use the device `ocl` in a forked process; start it with the 'spawn' method, or stay on the CPU there"
        )


os.register_at_fork(after_in_child=lambda: forked.append(True))


# What stands in line behind a kernel that is being built, in order.
backlog: list[Command] = []


def settle() -> None:
    """Waits until all kernels are built that something was enqueued with, and enqueues what stands in line behind them."""
    with _lock:
        began = monotonic()
        while backlog:
            _first(began)
        coming.waited()


def _first(began: float | None = None) -> None:
    """Enqueues what is first in line, whose kernel may have to be waited for."""
    do, arguments = backlog[0]
    try:
        if isinstance(arguments[0], Coming):
            arguments[0].wait(began)
    except BaseException:
        backlog.clear()  # what comes after would work on what was never made
        raise
    del backlog[0]
    _standing.append(do)
    try:
        do(*arguments)
    finally:
        _standing.pop()


_standing: list[Callable[..., None]] = []  # what is enqueued now that has stood in line


def _in_line(do: Callable[..., None], *arguments: object) -> bool:
    """Whether something has to stand in line, and then it does. Who records or observes gets everything at once."""
    if _standing:
        return False
    if observers or recorders:
        settle()
        return False
    while backlog:
        kernel = backlog[0][1][0]
        if isinstance(kernel, Coming) and kernel.ready() is None:
            break
        _first()
    if not backlog and not (isinstance(arguments[0], Coming) and arguments[0].ready() is None):
        return False
    backlog.append((do, arguments))
    return True


def launch(kernel: cl.Kernel | Coming, size: tuple[int, ...], group: tuple[int, ...], *args: Argument) -> None:
    """Enqueues a kernel; returns at once."""
    global launches
    with _lock:
        if (backlog or isinstance(kernel, Coming)) and _in_line(launch, kernel, size, group, *args):
            return
        kernel = coming.kernel(kernel)
        try:
            kernel(_ready(), size, group, *args)
        except cl.MemoryError as error:
            raise _no_room(kernel.function_name, error) from error
        for recorder in recorders:
            recorder(launch, kernel, size, group, *args)
        launches += 1
        if not launches % KEPT:
            _queue.flush()


class Draws(NamedTuple):
    """The argument of a kernel that says where a generator stands, which one, and how far it is afterwards."""

    at: int
    generator: generator.Generator
    ahead: int


def draws(arguments: Sequence[object]) -> Draws | None:
    """What a kernel draws, of its arguments; None of one that draws nothing."""
    for at, x in enumerate(arguments):
        if type(x) is generator.Draw:
            return Draws(at, x.generator, x.ahead)
    return None


class Ready(NamedTuple):
    """A kernel that has its arguments, but for buffers, of which it has the places and where in a list each is, and for the
    random numbers that it draws anew each time."""

    kernel: cl.Kernel
    size: tuple[int, ...]
    group: tuple[int, ...]
    holes: tuple[tuple[int, int], ...] = ()
    draws: Draws | None = None


def launch_again(ready: Sequence[Ready], buffers: Sequence[cl.Buffer] = ()) -> None:
    """Enqueues kernels whose arguments are known from an earlier time; returns at once. Recorders hear nothing of it."""
    global launches
    with _lock:
        settle()
        queue = _ready()
        for kernel, size, group, holes, drawn in ready:
            set_arg = kernel.set_arg
            for at, number in holes:
                set_arg(at, buffers[number])
            if drawn is not None:
                set_arg(drawn.at, drawn.generator.draw(drawn.ahead))
            try:
                cl.enqueue_nd_range_kernel(queue, kernel, size, group)
            except cl.MemoryError as error:
                raise _no_room(kernel.function_name, error) from error
            launches += 1
            if not launches % KEPT:
                queue.flush()


def listed(ready: tuple[Ready, ...]) -> Callable[[], None]:
    """What enqueues kernels whose arguments are all known, again and again."""
    ours = all(one.draws is None or one.draws.generator is generator.default for one in ready)
    if in_c.module is None or not ours:
        return functools.partial(launch_again, ready)
    drawn = ((*one[:4], None if one.draws is None else (one.draws.at, one.draws.ahead)) for one in ready)
    known = in_c.module.list(tuple(drawn))

    def enqueue() -> None:
        with _lock:
            settle()
            _as_wanted()
            in_c.module.again(known)

    return enqueue


def refused(kernel: cl.Kernel, code: int) -> None:
    """For plans.c: raises what a launch that the driver refused with this code is.

    Raises:
        torch.OutOfMemoryError: it found no room.
        RuntimeError: anything else.
    """
    what = cl.status_code.to_string(code)
    if code == cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE:
        raise _no_room(kernel.function_name, what)
    raise RuntimeError(f"ocl: the driver refuses to run {kernel.function_name} ({what})")


@contextlib.contextmanager
def _room_for(what: str) -> Iterator[None]:
    try:
        yield
    except cl.MemoryError as error:
        raise _no_room(what, error) from error


def _no_room(what: str, error: cl.Error | str) -> torch.OutOfMemoryError:
    """For drivers that find room for a buffer only when it is used."""
    return torch.OutOfMemoryError(
        f"ocl: no memory for what {what} works on ({error}); "
        f"the device has {context.devices[0].global_mem_size / 2**20:.0f} MiB, which others may use too"
    )


def _ready() -> cl.CommandQueue:
    """The queue, for whoever enqueues something behind all that was launched."""
    _all_launched()
    return _as_wanted()


def _as_wanted() -> cl.CommandQueue:
    """The queue, keeping times or not, as is wanted now; where that has changed, a new one that goes on after the old one.

    The device waits for that, not the host: a recording begins here, and would show a wait that is nobody's.

    Raises:
        RuntimeError: this is a child process made by fork.
    """
    global _queue, _timed
    refuse_fork()
    wanted = _always_timed or bool(observers)
    if wanted is not _timed:
        _all_launched()
        last = cl.enqueue_marker(_queue)
        _queue.flush()
        _timed = wanted
        _queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE if wanted else 0)
        cl.enqueue_barrier(_queue, wait_for=[last])
        _tell_plans()
    return _queue


def _all_launched() -> None:
    """Before anything else goes to the driver: it has all that plans.c launches by a thread of its own, and refused nothing."""
    if in_c.module is not None:
        in_c.module.settle()


def _tell_plans() -> None:
    if in_c.module is not None:
        in_c.module.use(_queue.int_ptr, _timed, _always_timed)


def keep_times() -> None:
    """From now on events can say when the device passed them."""
    global _always_timed
    _always_timed = True
    with _lock:
        _ready()
        _tell_plans()


def copy(source: cl.Buffer, source_at: int, target: cl.Buffer, target_at: int, size: int) -> None:
    """Enqueues a copy of `size` bytes within the device; returns at once."""
    with _lock, _room_for("a copy"):
        if backlog and _in_line(copy, source, source_at, target, target_at, size):
            return
        cl.enqueue_copy(_ready(), target, source, src_offset=source_at, dst_offset=target_at, byte_count=size)
        for recorder in recorders:
            recorder(copy, source, source_at, target, target_at, size)


def fill(target: cl.Buffer, pattern: np.generic, at: int, size: int) -> None:
    """Enqueues filling `size` bytes from byte `at` with one value; returns at once."""
    with _lock, _room_for("a fill"):
        if backlog and _in_line(fill, target, pattern, at, size):
            return
        cl.enqueue_fill_buffer(_ready(), target, pattern, at, size)
        for recorder in recorders:
            recorder(fill, target, pattern, at, size)


def write(source: npt.NDArray[np.generic], target: cl.Buffer, at: int) -> None:
    """Enqueues a copy of host bytes, which must not change afterwards, to the device; returns at once."""
    with _lock, _room_for("an upload"):
        if backlog and _in_line(write, source, target, at):
            return
        event = cl.enqueue_copy(_ready(), target, source, dst_offset=at, is_blocking=False)
        _writes.append((event, source))
        for recorder in recorders:
            recorder(write, source, target, at)
        _reap()


def _reap() -> None:
    while _writes and _writes[0][0].command_execution_status == cl.command_execution_status.COMPLETE:
        _writes.popleft()


def read(source: cl.Buffer, at: int, target: npt.NDArray[np.generic], operator: str) -> None:
    """Waits until the device has run everything queued before, and copies from byte `at` into host memory."""
    for recorder in recorders:
        recorder(read, source, at, target, operator)
    with _lock:
        settle()
        queue = _ready()
    start = monotonic_ns()
    cl.enqueue_copy(queue, target, source, src_offset=at, is_blocking=True)
    for reader in readers:
        reader(operator, target.nbytes, start, monotonic_ns())


def read_later(source: cl.Buffer, at: int, target: npt.NDArray[np.generic]) -> None:
    """Enqueues a copy into host memory; returns at once, and the bytes are there after `finish`."""
    with _lock:
        if backlog and _in_line(read_later, source, at, target):
            return
        _writes.append((cl.enqueue_copy(_ready(), target, source, src_offset=at, is_blocking=False), target))
        for recorder in recorders:
            recorder(read_later, source, at, target)


def marker() -> cl.Event:
    """An event that completes when everything queued before it has."""
    with _lock:
        settle()
        return cl.enqueue_marker(_ready())


def finish() -> None:
    """Waits until the device has run everything queued."""
    if not in_bad_fork():
        settle()
        _all_launched()
        _queue.finish()
        with _lock:
            _reap()


_tell_plans()
atexit.register(finish)
