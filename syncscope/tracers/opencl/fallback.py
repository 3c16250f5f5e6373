"""The hook's body in Python, where no C compiler is: the functions and records of icd.c, some microseconds a call.

Only the calls that matter most are seen: kernels, buffer copies and fills, waits, builds. A driver's call comes back into
Python, so it waits for the GIL, and what is raised there (Ctrl-C) cannot pass the driver: it is put off until outside.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes as c
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic_ns, sleep
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from syncscope.tracers import record_file
from syncscope.tracers.opencl.abi import Hook, table_of

P, N, U, Z, L = c.c_void_p, c.c_int32, c.c_uint32, c.c_size_t, c.c_uint64
_RW = [P, P, U, Z, Z, P, U, P, P]
_COPY = [P, P, P, Z, Z, Z, U, P, P]


class Prototype(NamedTuple):
    """A function of the table: its slot, what it gives and takes, and which arguments are the event, `blocking` and bytes."""

    name: str
    slot: int
    result: Any
    takes: list[Any]
    event: int = -1
    blocking: int = -1
    size: int = -1


FUNCTIONS = [
    Prototype("EnqueueNDRangeKernel", 59, N, [P, P, U, P, P, P, U, P, P], 8),
    Prototype("EnqueueReadBuffer", 48, N, _RW, 8, 2, 4),
    Prototype("EnqueueWriteBuffer", 49, N, _RW, 8, 2, 4),
    Prototype("EnqueueCopyBuffer", 50, N, _COPY, 8, -1, 5),
    Prototype("EnqueueFillBuffer", 102, N, [P, P, P, Z, Z, Z, U, P, P], 8, -1, 5),
    Prototype("EnqueueMapBuffer", 56, P, [P, P, U, L, Z, Z, U, P, P, P], 8, 2, 5),
    Prototype("EnqueueUnmapMemObject", 58, N, [P, P, P, U, P, P], 5),
    Prototype("Finish", 47, N, [P]),
    Prototype("WaitForEvents", 41, N, [U, P]),
    Prototype("BuildProgram", 30, N, [P, U, P, c.c_char_p, P, P]),
    Prototype("CreateCommandQueue", 9, P, [P, P, L, P]),
    Prototype("CreateCommandQueueWithProperties", 123, P, [P, P, P, P]),
]
_INFO = c.CFUNCTYPE(N, P, U, Z, P, P)
_ONE = c.CFUNCTYPE(N, P)
LIVE = 4096  # events that may wait for their stamps


class _Local(threading.local):
    def __init__(self) -> None:
        self.deep = False
        self.waits = (c.c_uint64 * 2)()
        self.pointer = c.pointer(self.waits)


class Library:
    """Answers as the compiled library does."""

    _name = "ctypes"

    def __init__(self) -> None:
        self._vendors: dict[int, list[int]] = {}
        self._functions: dict[tuple[int, int], Any] = {}
        self._thunks = [self._thunk(number, function) for number, function in enumerate(FUNCTIONS)]
        self._hooks = [
            Hook(f.name.encode(), f.slot, c.cast(t, c.c_void_p).value)
            for f, t in zip(FUNCTIONS, self._thunks, strict=True)
        ]
        self._local = _Local()
        self._lock = threading.RLock()
        self._on = self._armed = self._full = False
        self._file = -1
        self._interrupt: Any = None
        self._line: Callable[[], int] = int  # 0: none is known
        self._reset()
        os.register_at_fork(after_in_child=self._in_child)

    def _reset(self) -> None:
        self._pending: deque[tuple[int, int, int, int]] = deque()  # event, table, correlation, queue
        self._queues: dict[int, tuple[int, bool]] = {}
        self._devices: dict[int, int] = {}
        self._names: dict[tuple[int, ...], int] = {}
        self._correlation = self._written = self._busy = 0
        self._lost = [0, 0, 0, 0]

    def _in_child(self) -> None:
        self._on = self._armed = False
        self._file = -1
        self._pending.clear()

    # ---- what the rest of this room calls ----

    def abi(self) -> int:
        """The version of the compiled code: 0, there is none."""
        return 0

    def hook_list(self) -> list[Hook]:
        """Our functions."""
        return self._hooks

    def number_of_hooks(self) -> int:
        """How many there are."""
        return len(self._hooks)

    def add_table(self, at: int, vendor: Any) -> int:
        """Keeps the vendor's functions."""
        self._vendors[at] = [pointer or 0 for pointer in vendor]
        self._functions = {key: value for key, value in self._functions.items() if key[0] != at}
        return 1

    def ask_line(self, address: int | None) -> None:
        """Has this asked with each call which line of Python makes it; None for nobody."""
        self._line = c.PYFUNCTYPE(c.c_int64)(address) if address else int

    def arm(self, yes: int) -> None:
        """New queues get profiling although nothing is recorded yet."""
        self._armed = bool(yes)

    def start(self, file: int, offset: int, cycles: int) -> int:
        """Records into `file`, whose records begin at `offset`, from now on."""
        with self._lock:
            self._reset()
            self._file, self._on = file, True
            if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
                self._interrupt = signal.signal(signal.SIGINT, self._later)
            self._full = False
            os.lseek(file, 0, os.SEEK_END)
            window = np.zeros(record_file.WINDOW // record_file.RECORD.itemsize, record_file.RECORD)
            window["type"][0] = record_file.FRONT
            window["t0"][0] = record_file.ENDLESS
            if failed := record_file.append(file, window.tobytes())[1]:
                self._on = False
                return failed
        return 0

    def settle(self, patience: int) -> None:
        """Waits for the stamps of what runs."""
        until = monotonic_ns() + patience
        while self._pending and monotonic_ns() < until:
            self._harvest()
            if self._pending:
                sleep(0.0002)

    def stop(self, patience: int) -> int:
        """Ends the recording; the number of events given up."""
        self._on = False
        self.settle(patience)
        if self._interrupt is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)
            self._interrupt = None
        left = len(self._pending)
        while self._pending:
            event, table, *_ = self._pending.popleft()
            self._call(table, 44, _ONE)(event)
        self._file = -1
        return left

    def counts(self, out: Any) -> None:
        """See `compiled.counts`."""
        values = [self._written, len(self._pending), *self._lost, self._busy]
        found = c.cast(out, c.POINTER(c.c_uint64 * 7)).contents
        for i, value in enumerate(values):
            found[i] = value

    def loads(self) -> int:
        """How many libraries were loaded, which is not known here: another number each time, so that the caller looks."""
        self._loads = getattr(self, "_loads", 0) + 1
        return self._loads

    def waits_of_this_thread(self) -> Any:
        """Where this thread's numbers of blocking calls stand."""
        return self._local.pointer

    # ---- the hook ----

    def _later(self, number: int, frame: FrameType | None) -> Any:
        """Ctrl-C in our frames could not pass the driver's, which would take it for an answer: again in a moment."""
        at = frame
        while at is not None:
            if at.f_code.co_filename == __file__:
                threading.Timer(0.002, _thread.interrupt_main).start()
                return None
            at = at.f_back
        return self._interrupt(number, frame) if callable(self._interrupt) else None

    def _call(self, table: int, slot: int, kind: Any) -> Any:
        found = self._functions.get((table, slot))
        if found is None:
            found = self._functions[table, slot] = kind(self._vendors[table][slot])
        return found

    def _thunk(self, number: int, function: Prototype) -> Any:
        kind = c.CFUNCTYPE(function.result, *function.takes)

        def hook(*arguments: Any) -> Any:
            if function.name != "WaitForEvents":
                table = table_of(arguments[0])
            elif arguments[0] and arguments[1]:
                table = table_of(c.c_uint64.from_address(arguments[1]).value)
            else:  # an error of the program: any vendor says so
                table = next(iter(self._vendors))
            vendor = self._call(table, function.slot, kind)
            if self._local.deep or not (self._on or self._armed):
                return vendor(*arguments)
            self._local.deep = True
            try:
                return self._traced(number, function, table, vendor, arguments)
            finally:
                self._local.deep = False

        return kind(hook)

    def _traced(
        self, number: int, f: Prototype, table: int, vendor: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        if f.name.startswith("Create"):
            return vendor(*_with_profiling(f.name, arguments))
        if not self._on:
            return vendor(*arguments)
        queue, profiled = (
            (0, False) if f.name in ("WaitForEvents", "BuildProgram") else self._queue(table, arguments[0])
        )
        own = c.c_void_p()
        passed = arguments
        if f.event >= 0 and profiled and not arguments[f.event]:
            passed = (*arguments[: f.event], c.addressof(own), *arguments[f.event + 1 :])
        waits = f.name == "Finish" or (f.blocking >= 0 and bool(arguments[f.blocking]))
        if f.name == "WaitForEvents":
            events = (c.c_void_p * arguments[0]).from_address(arguments[1])
            waits = any(self._status(table, event) > 0 for event in events)
        start = monotonic_ns()
        result = vendor(*passed)
        end = monotonic_ns()
        failed = result is None if f.result is P else result != 0
        event = None
        if f.event >= 0 and profiled and not failed:
            event = own.value or c.c_void_p.from_address(arguments[f.event]).value
            if event and not own.value:
                self._call(table, 43, _ONE)(event)
        name = self._kernel(table, arguments[1]) if f.slot == 59 else 0
        size = arguments[f.size] if f.size >= 0 else 0
        if f.name == "WaitForEvents" and not waits:
            return result
        with self._lock:
            self._correlation += 1
            flags = (record_file.BLOCKING if waits else 0) | (record_file.FAILED if failed else 0)
            thread = threading.get_native_id()
            call = (number, flags, thread, queue, name, self._correlation, size, start, end)
            self._put(record_file.CALL, *call, 0, self._line())
            if event and len(self._pending) < LIVE:
                self._pending.append((event, table, self._correlation, queue))
            elif event:
                self._lost[1] += 1
                self._call(table, 44, _ONE)(event)
        if waits:
            self._local.waits[0] += 1
        if waits or self._correlation % 16 == 0:
            self._harvest()
        return result

    def _status(self, table: int, event: int) -> int:
        status = c.c_int32(1)
        self._call(table, 42, _INFO)(event, 0x11D3, 4, c.addressof(status), None)
        return status.value

    def _harvest(self) -> None:
        with self._lock:
            while self._pending:
                event, table, correlation, queue = self._pending[0]
                status = self._status(table, event)
                if status > 0:
                    return
                stamps, profiling = (c.c_uint64 * 4)(), self._call(table, 45, _INFO)
                bad = [profiling(event, 0x1280 + k, 8, c.addressof(stamps) + 8 * k, None) for k in range(4)]
                self._call(table, 44, _ONE)(event)
                self._pending.popleft()
                if status < 0 or any(bad):
                    self._lost[2] += 1
                    continue
                queued, submitted, started, ended = stamps
                self._busy += max(0, ended - started)
                self._put(record_file.STAMP, 0, 0, 0, queue, 0, correlation, 0, started, ended, queued, submitted)

    def _put(self, *row: int) -> None:
        values = (*row[:3], 0, *row[3:], *[0] * (12 - len(row)))
        self._written += self._append(np.array([values], record_file.RECORD).tobytes())

    def _append(self, records: bytes) -> bool:
        """Writes them; where there is no room nothing more is written, and the file's first record says since when."""
        if not self._full and record_file.append(self._file, records)[1]:
            self._full = True
            front = np.array(
                [(record_file.FRONT, *[0] * 7, record_file.ENDLESS, monotonic_ns(), 0, 0)], record_file.RECORD
            )
            with contextlib.suppress(OSError):
                os.pwrite(self._file, front.tobytes(), record_file.HEADER)
        if self._full:
            self._lost[0] += len(records) // record_file.RECORD.itemsize
        return not self._full

    def _number(self, key: tuple[int, ...], text: bytes) -> int:
        number = self._names[key] = len(self._names) + 1
        self._append(b"".join(record_file.name_records(number, text)))
        return number

    def _text(self, table: int, slot: int, handle: int, what: int) -> bytes:
        text = c.create_string_buffer(256)
        self._call(table, slot, _INFO)(handle, what, 256, c.addressof(text), None)
        return text.value

    def _kernel(self, table: int, kernel: int) -> int:
        text = self._text(table, 39, kernel, 0x1190)  # asked each time: a handle may be another kernel's by now
        with self._lock:
            return self._names.get((hash(text),)) or self._number((hash(text),), text)

    def _queue(self, table: int, queue: int) -> tuple[int, bool]:
        known = self._queues.get(queue)
        if known is not None:
            return known
        info, properties, device, memory = self._call(table, 12, _INFO), c.c_uint64(), c.c_void_p(), c.c_uint64()
        info(queue, 0x1093, 8, c.addressof(properties), None)
        info(queue, 0x1091, 8, c.addressof(device), None)
        with self._lock:
            at = device.value or 0
            if at not in self._devices:
                self._devices[at] = len(self._devices) + 1
                units, kind = c.c_uint32(), c.c_uint64()
                for what, value in ((0x101F, memory), (0x1002, units), (0x1000, kind)):
                    self._call(table, 3, _INFO)(at, what, c.sizeof(value), c.addressof(value), None)
                name = self._number((0, at), self._text(table, 3, at, 0x102B))
                about = name, 0, memory.value, units.value, kind.value
                self._put(record_file.DEVICE, 0, 0, 0, self._devices[at], *about)
            known = self._queues[queue] = (len(self._queues) + 1, bool(properties.value & 2))
            self._put(record_file.QUEUE, 0, record_file.PROFILED if known[1] else 0, 0, known[0], self._devices[at])
            return known


_kept: deque[Any] = deque(maxlen=64)  # property lists that a driver may still be reading


def _with_profiling(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a queue's creation with profiling asked for."""
    context, device, properties, error = arguments
    if name == "CreateCommandQueue":
        return context, device, properties | 2, error
    wanted: dict[int, int] = {}
    at = properties
    while at and c.c_uint64.from_address(at).value:
        wanted[c.c_uint64.from_address(at).value] = c.c_uint64.from_address(at + 8).value
        at += 16
    wanted[0x1093] = wanted.get(0x1093, 0) | 2
    flat = (c.c_uint64 * (2 * len(wanted) + 1))(*[word for pair in wanted.items() for word in pair], 0)
    _kept.append(flat)
    return context, device, c.addressof(flat), error
