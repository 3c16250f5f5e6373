"""How much of its device a kernel fills: one that leaves room takes no longer over more rows, until there is none.

A launch has so many blocks, and a multiprocessor holds so many of them at once: as many as its threads, registers and shared
memory allow. With as many blocks as all multiprocessors hold the device is full, and each further block takes its time.
A processor (OpenCL on a CPU) has one block on each core. A fill has no launch: its bytes tell how many threads write them.

What a launch is given must be in the memory of the device, too: that bounds over how many rows more it can have run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.trace import Kind, Trace

THREADS = 2048  # that a multiprocessor holds, where the recording does not say (NVIDIA: 1024 to 2048, AMD: 2560)
BLOCKS = 32  # the most that it holds of any size
WARP, BLOCK = 32, 1024  # threads that run as one, and the most of a block
WRITTEN = 16  # bytes that a thread of a fill writes at once
Full = Literal["all", "each"]


def filled(trace: Trace, rows: NDArray[np.intp], full: Full = "all") -> NDArray[np.float64]:
    """The part of its device that each of these kernels fills, at most 1; 1 where that is not known.

    The device is full with `all` the blocks that it holds, or with one on `each` multiprocessor.
    """
    if not len(rows):
        return np.zeros(0)
    devices = trace.meta.get("devices") or []
    number = np.array([max(0, lane.device) for lane in trace.lanes], np.int64)[trace.lane[rows]]
    pairs, at = np.unique(np.stack([number, trace.detail[rows]], axis=1), axis=0, return_inverse=True)
    known = [
        _filled(Detail.of(trace.details[detail]), devices[device], full)
        if detail >= 0 and device < len(devices)
        else 1.0
        for device, detail in pairs.tolist()
    ]
    found: NDArray[np.float64] = np.array(known, float)[at.ravel()]
    for place in np.flatnonzero((trace.kind[rows] == Kind.FILL) & (trace.bytes[rows] > 0)).tolist():
        device = int(number[place])
        if device < len(devices):
            found[place] = _written(int(trace.bytes[rows[place]]), devices[device])
    return found


def fits(trace: Trace, rows: NDArray[np.intp], times: float) -> NDArray[np.bool_]:
    """Whether so many times of what each of these kernels and fills is given fits into its device; True where not known.

    Each thread but those of the last block is given a byte at least. What does not fit does not grow that way: it was given
    something else than the rows that are thought to be more.
    """
    devices = trace.meta.get("devices") or []
    found = np.ones(len(rows), bool)
    for place, row in enumerate(rows.tolist()):
        device = max(0, trace.lanes[trace.lane[row]].device)
        about = devices[device] if device < len(devices) else None
        memory = _count(about.get("totalGlobalMem")) if isinstance(about, Mapping) else 0.0
        launch = trace.known(row)
        least = max(0.0, _product(launch.grid) - 1) * _product(launch.block)
        if trace.kind[row] == Kind.FILL:
            least = max(0.0, float(trace.bytes[row]))
        found[place] = not memory or least * times <= memory
    return found


def used(trace: Trace, rows: NDArray[np.intp], items: int) -> NDArray[np.float64]:
    """The part of the threads of each of these kernels that works at least, if it is given so many items; 1 where not known.

    A kernel has a block more than it needs at most; a single block may be given as few items as there are.
    """
    details, at = np.unique(trace.detail[rows], return_inverse=True)
    known = [_used(Detail.of(trace.details[detail]), items) if detail >= 0 else 1.0 for detail in details.tolist()]
    return np.array(known, float)[at.ravel()]


def _used(launch: Detail, items: int) -> float:
    blocks, threads = _product(launch.grid), _product(launch.block)
    if not blocks or not threads:
        return 1.0
    return min(1.0, max(float(items), (blocks - 1) * threads + 1) / (blocks * threads))


def _filled(launch: Detail, device: Any, full: Full) -> float:
    """The part of a device (in Kineto's words) that one launch fills."""
    if not isinstance(device, Mapping):
        return 1.0
    units, blocks, threads = _count(device.get("numSms")), _product(launch.grid), _product(launch.block)
    if not units or not blocks or not threads:
        return 1.0
    if blocks == 1 and threads < WARP and not device.get("processor"):
        # cut to its items: with more of them it is larger before there are others
        blocks, threads = threads / BLOCK, BLOCK
    held = 1.0
    if full == "all" and not device.get("processor"):
        held = min(_held(launch, device, threads), BLOCKS)
    return min(1.0, blocks / (units * held))


def _written(size: int, device: Any) -> float:
    """The part of a device that writes so many bytes."""
    if not isinstance(device, Mapping) or not (units := _count(device.get("numSms"))) or device.get("processor"):
        return 1.0
    return min(1.0, size / (WRITTEN * units * (_count(device.get("maxThreadsPerMultiprocessor")) or THREADS)))


def _held(launch: Detail, device: Mapping[str, Any], threads: float) -> float:
    """How many blocks of a launch one multiprocessor holds, by each of its limits; at least one, for it runs."""
    limits = (
        (_count(device.get("maxThreadsPerMultiprocessor")) or THREADS, threads),
        (_count(device.get("regsPerMultiprocessor")), launch.registers * threads),
        (_count(device.get("sharedMemPerMultiprocessor")), launch.shared_memory),
    )
    return max(1.0, min(there // each for there, each in limits if there and each))


def _count(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _product(sizes: tuple[Any, ...]) -> float:
    return math.prod(map(_count, sizes)) if sizes else 0.0
