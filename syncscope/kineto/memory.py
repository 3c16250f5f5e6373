"""Allocations and frees as Kineto writes them: an instant called `[memory]` each, with what is in use since.

    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 12.5,
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 140, "Bytes": -512, "Total Allocated": 1024, "Total Reserved": 4096}}

Device type 0 is the CPU, whose memory is not looked at. Of 2021 they have neither address nor totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscope.kineto.scan import Args, JsonEvent
from syncscope.kineto.values import Column, integers
from syncscope.model.memory import Allocations
from syncscope.model.trace import Trace

NAME = "[memory]"
CPU, CUDA = 0, 1  # c10::DeviceType
LARGEST = 1 << 53  # bytes: more is damage
_NO_ARGS = Args()


def is_one(event: JsonEvent) -> bool:
    """Whether this instant is one of a device's memory."""
    return event.name == NAME and event.args is not None and event.args.device_type not in (CPU, -1)


def columns_of(events: Sequence[JsonEvent], time: Column, lane: Column, place: Column) -> Allocations:
    """These instants as columns. A total that is not written is -1."""
    args = [event.args or _NO_ARGS for event in events]
    size = integers([a.asked for a in args])
    return Allocations(
        time,
        integers([a.address for a in args]),
        np.where(np.abs(size) < LARGEST, size, 0),
        integers([a.allocated for a in args]),
        integers([a.reserved for a in args]),
        np.maximum(integers([a.device_id for a in args]), 0),
        lane.astype(np.int64),
        place.astype(np.int64),
    )


def lines(trace: Trace, numbers: Sequence[tuple[int, int]], places: Sequence[str], us: Iterator[str]) -> Iterator[str]:
    """The instants of a trace; `numbers` are pid and tid of each lane, `places` and `us` texts of the places and times."""
    if trace.memory is None:
        return
    columns = trace.memory.columns()
    rows = zip(*(values.tolist() for values in columns.values()), us, strict=True)
    for number, (_, address, size, total, reserved, device, lane, place, at) in enumerate(rows):
        pid, tid = numbers[lane] if lane >= 0 else (0, 0)
        said = f',"place":{places[place]}' if place >= 0 else ""
        yield (
            f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"{NAME}","pid":{pid},"tid":{tid},"ts":{at},'
            f'"args":{{"Ev Idx":{number},"Device Type":{CUDA},"Device Id":{device},"Addr":{address},"Bytes":{size},'
            f'"Total Allocated":{total},"Total Reserved":{reserved}{said}}}}}'
        )
