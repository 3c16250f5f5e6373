"""How much of its device a kernel fills, from its grid and block as a file has them."""

import json
from typing import Any

import pytest

from syncscope import kineto
from syncscope.analysis.occupancy import filled, fits, used
from syncscope.model.trace import Kind

H100 = {"id": 0, "numSms": 132, "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536}
H100 |= {"sharedMemPerMultiprocessor": 233472}


def recording(device: dict[str, Any], cat: str = "kernel", name: str = "k", **launch: Any) -> Any:
    """One kernel, as torch.profiler writes it."""
    kernel = {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    args = {"device": 0, "stream": 7, "correlation": 1, **launch}
    file = {"deviceProperties": [device], "traceEvents": [kernel | {"args": args}]}
    return kineto.read(json.dumps(file).encode())


@pytest.mark.parametrize(
    ("launch", "of_all", "of_each"),
    [
        ({"grid": [66, 1, 1], "block": [128, 1, 1]}, 66 / (132 * 16), 0.5),  # 16 blocks of 128 threads each
        ({"grid": [132, 4, 4], "block": [128, 1, 1]}, 1.0, 1.0),
        ({"grid": [66, 1, 1], "block": [128, 1, 1], "registers per thread": 255}, 66 / (132 * 2), 0.5),
        ({"grid": [66, 1, 1], "block": [128, 1, 1], "shared memory": 120_000}, 0.5, 0.5),  # of which one has room
        ({"grid": [66, 1, 1], "block": [1, 1, 1]}, 66 / (132 * 32), 0.5),  # no more blocks than that, however small
        ({"grid": [1, 1, 1], "block": [2, 1, 1]}, 2 / 1024 / (132 * 2), 2 / 1024 / 132),  # it is a larger block first
        ({}, 1.0, 1.0),  # nothing is known: then it grows with its rows
        ({"grid": "many", "block": [128, 1, 1]}, 1.0, 1.0),
    ],
)
def test_a_launch_fills_its_part_of_a_gpu(launch: dict[str, Any], of_all: float, of_each: float) -> None:
    trace = recording(H100, **launch)
    rows = trace.rows(Kind.KERNEL)
    assert filled(trace, rows).tolist() == pytest.approx([of_all])
    assert filled(trace, rows, "each").tolist() == pytest.approx([of_each])


def test_a_fill_takes_part_of_a_gpu_by_its_bytes() -> None:
    trace = recording(H100, cat="gpu_memset", name="Memset (Device)", bytes=2048 * 132 * 16 // 4)
    rows = trace.rows(Kind.FILL)
    assert filled(trace, rows).tolist() == filled(trace, rows, "each").tolist() == [0.25]


def test_what_memory_cannot_hold_was_given_no_rows() -> None:
    launch = {"grid": [1001, 1, 1], "block": [100, 1, 1]}  # 100,000 items at least
    trace = recording(H100 | {"totalGlobalMem": 10_000_000}, **launch)
    rows = trace.rows(Kind.KERNEL)
    assert fits(trace, rows, 100).tolist() == [True]
    assert fits(trace, rows, 101).tolist() == [False]
    assert fits(recording(H100, **launch), rows, 1e9).tolist() == [True]  # nobody knows how much it holds


def test_a_core_is_full_with_one_group() -> None:
    trace = recording({"numSms": 4, "processor": True}, grid=[2, 1, 1], block=[64, 1, 1])
    assert filled(trace, trace.rows(Kind.KERNEL)).tolist() == [0.5]


def test_what_a_launch_was_like_comes_back_from_a_file_of_our_own() -> None:
    trace = recording(H100, grid=[66, 1, 1], block=[128, 1, 1], **{"registers per thread": 40})
    again = kineto.read(kineto.write(trace))
    assert again == trace
    assert again.known(0).registers == 40


@pytest.mark.parametrize(
    ("launch", "of_threads"),
    [
        ({"grid": [1, 1, 1], "block": [256, 1, 1]}, 8 / 256),  # a block for eight items
        ({"grid": [4, 1, 1], "block": [256, 1, 1]}, 769 / 1024),  # more than three were needed
        ({"grid": [1, 1, 1], "block": [4, 1, 1]}, 1.0),  # each has two
        ({}, 1.0),
    ],
)
def test_a_block_may_hold_more_items_than_it_was_given(launch: dict[str, Any], of_threads: float) -> None:
    trace = recording(H100, **launch)
    assert used(trace, trace.rows(Kind.KERNEL), 8).tolist() == pytest.approx([of_threads])
