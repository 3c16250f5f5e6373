"""How the work-groups of a nest are shaped: what is taken where nobody has tuned, and what the search may try."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from syncscope.kernels.comprehension.fuse import ACROSS, Nest, Strides, lies_along
from syncscope.kernels.comprehension.nests import Schedule
from syncscope.kernels.device import device

_FULL = 2048  # items that a unit of a GPU has under way
_GROUP = 256
_LARGEST = min(1024, int(device.max_work_group_size))
_LEAST = 64  # elements from which several at a time pay


def default(nest: Nest, strides: Strides, units: int, gpu: bool) -> Schedule:
    """Neighbours read neighbours, and no more items share a point than it has work for."""
    length = -(-nest.length // nest.shares)
    if length == 1:
        return Schedule(_GROUP, each=4 if gpu and nest.count >= units * _FULL * 8 else 1)
    if not gpu:
        return Schedule(16 if nest.count * nest.shares >= 64 * units else 1, ahead=8 if length >= _LEAST else 1)
    deep, points, group = 1, nest.count * nest.shares, _GROUP
    if lies_along(nest, strides):
        while deep < _LARGEST and deep * (4 if deep < _GROUP else 8) < length:
            deep *= 2
        group = max(_GROUP if deep >= _GROUP or points * deep > units * _FULL * 8 else 128, deep)
        return Schedule(group, deep, True, 4 if length >= deep * 4 else 1)
    while deep < ACROSS and deep * 16 < length and points * deep < units * _FULL:
        deep *= 2
    return Schedule(_GROUP, deep, False, 4 if length >= deep * 8 else 1)


def every(nest: Nest, gpu: bool) -> Iterator[Schedule]:
    """All that the search may try."""
    inner = nest.length > 1
    for group in (64, 128, 256, 512, _LARGEST) if gpu else (1, 4, 16, 64, 256):
        for ahead in (1, 2, 4, 8) if nest.reductions else (1,):
            for deep in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if gpu and inner else (1,):
                if deep > group:
                    continue
                for along in (True, False) if 1 < deep < group else (True,):
                    yield Schedule(group, deep, along, ahead)
                    if deep == 1 and not inner:
                        yield from (replace(Schedule(group), each=each) for each in (2, 4, 8))
