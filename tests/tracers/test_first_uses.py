"""What is told of kernels that start late on an idle queue: PoCL compiles one when it first runs."""

from typing import Any

import numpy as np
import pytest

from syncscope.model.trace import Kind
from syncscope.tracers import record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.opencl.records import add_records

US, MS = 1_000, 1_000_000
LATE = 20 * MS


def row(kind: int, **fields: int) -> Any:
    found = np.zeros(1, record_file.RECORD)
    found["type"] = kind
    for name, value in fields.items():
        found[name] = value
    return found


def recorded(*launches: tuple[int, int, int]) -> Any:
    """A queue, and every 100 ms a launch of `gemm`: by which handle, on how many work items, and how late it starts."""
    rows = [row(record_file.DEVICE, queue=1), row(record_file.QUEUE, flags=record_file.PROFILED, queue=1, name=1)]
    name = int.from_bytes(b"gemm", "little")
    rows += [row(record_file.NAME, flags=4, name=handle, corr=name) for handle in {handle for handle, _, _ in launches}]
    for number, (handle, items, late) in enumerate(launches, 1):
        at = 100 * MS * number
        start = at + 5 * US + late
        rows += [
            row(record_file.CALL, queue=1, name=handle, corr=number, size=items, t0=at, t1=at + 10 * US, a=64),
            row(record_file.STAMP, queue=1, corr=number, a=at + 2 * US, b=at + 5 * US, t0=start, t1=start + 50 * US),
        ]
    return np.concatenate(rows)


@pytest.mark.parametrize(
    ("launches", "told"),
    [
        pytest.param([(1, 64, LATE), (1, 64, 0)], [100], id="the first"),
        pytest.param([(1, 64, 0), (1, 64, LATE)], [], id="one more, which others delay"),
        pytest.param([(1, 64, 0), (2, 64, LATE)], [], id="one more by another handle"),
        pytest.param([(1, 64, 0), (2, 128, LATE)], [200], id="another of that name"),
    ],
)
def test_a_kernel_that_starts_late_is_compiled_where_it_runs_first(launches, told):
    builder = Builder()
    add_records(builder, recorded(*launches), ["EnqueueNDRangeKernel"], 0, 1)
    found = [event for event in builder.trace() if event.kind is Kind.COMPILE]
    assert [event.name for event in found] == ["first use of gemm"] * len(told)
    assert [event.start // MS for event in found] == told
