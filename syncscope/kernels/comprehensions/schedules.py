"""How the work-groups of a nest are shaped: what is taken where nobody has tuned, what the search may try, what it found."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from syncscope.files import cache_folder
from syncscope.kernels.comprehensions.expressions import names, reads
from syncscope.kernels.comprehensions.fuse import ACROSS, Nest, Strides, lies_along
from syncscope.kernels.comprehensions.nests import HELD, Schedule
from syncscope.kernels.device import device
from syncscope.kernels.tuning import store

_FULL = 2048  # items that a unit of a GPU has under way
_GROUP = 256
_LARGEST = min(1024, int(device.max_work_group_size))
_REGISTERS = 64  # that an item may keep of what it read
_LEAST = 64  # elements from which several at a time pay


def default(nest: Nest, strides: Strides, units: int, gpu: bool) -> Schedule:
    """Neighbours read neighbours, and no more items share a point than it has work for."""
    length, points = -(-nest.length // nest.shares), nest.count * nest.shares
    if length == 1:
        return Schedule(_GROUP, each=4 if gpu and nest.count >= units * _FULL * 8 else 1)
    if not gpu:
        return Schedule(16 if points >= 64 * units else 1, ahead=8 if length >= _LEAST else 1)
    deep, along = 1, lies_along(nest, strides)
    if along:
        while deep < _LARGEST and deep * (8 if deep < _LARGEST // 2 else HELD) < length:
            deep *= 2
    else:
        while deep < ACROSS and deep * 16 < length and points * deep < units * _FULL:
            deep *= 2
    group = max(128, deep) if along else _GROUP
    if nest.shares == 1 and -(-length // deep) <= min(HELD, _REGISTERS // max(1, _kept(nest))):
        return Schedule(group, deep, along, held=True)
    return Schedule(group, deep, along, 4 if length >= deep * 8 else 1)


def _kept(nest: Nest) -> int:
    """Elements that an item keeps for each of its turns: what several statements read is one, whatever they name it by."""
    most: Counter[str] = Counter()
    for s in nest.steps:
        most |= Counter(x.tensor for x in set(reads(s.value)) if names(x) & set(nest.inner(s)))
    return sum(most.values())


def every(nest: Nest, gpu: bool) -> Iterator[Schedule]:
    """All that the search may try."""
    inner = nest.length > 1
    for group in (64, 128, 256, 512, _LARGEST) if gpu else (1, 4, 16, 64, 256):
        for ahead in (1, 2, 4, 8) if nest.reductions else (1,):
            for deep in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if gpu and inner else (1,):
                for along in (True, False) if 1 < deep < group else (True,):
                    for each in (1,) if inner else (1, 2, 4, 8):
                        for held in (True, False) if 1 < nest.length <= HELD * deep else (False,):
                            if deep <= group:
                                yield Schedule(group, deep, along, ahead, each, held)


def class_of(nest: Nest, name: str, strides: Strides) -> str:
    """What schedules are kept under: what is computed, and the sizes by powers of two."""
    sizes = "x".join(str((size - 1).bit_length()) for size in nest.points.values())
    along = "along" if lies_along(nest, strides) else "across"
    kinds = ",".join(f"{s.op}{'!' if s.reduced else ''}{s.dtype.itemsize}" for s in nest.steps)
    return f"{name} {kinds} {along} {sizes} {max(1, nest.length).bit_length()} {nest.shares}"


def _path() -> Path:
    return cache_folder("schedules") / f"{store.device_name()}-comprehensions.jsonl"


@functools.cache
def known() -> Mapping[str, Schedule]:
    """What a search found on this device, by class."""
    return dict(store.read(_path(), Schedule))


def keep(nest_class: str, schedule: Schedule) -> None:
    """Adds a schedule to the table; a class has one line, the last found."""
    store.keep([(nest_class, schedule, {})], _path())
    known.cache_clear()
