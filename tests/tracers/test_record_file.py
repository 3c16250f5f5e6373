"""The file that the hook writes, as a death of the process may leave it."""

import time
from pathlib import Path

import numpy as np
import pytest

from syncscope.tracers import python_events, record_file

WINDOW = 8  # records


def test_what_comes_after_the_end_of_a_recording_is_not_told_as_lost(tmp_path: Path) -> None:
    events = python_events.PythonEvents(tmp_path)
    events.step(1, 0, time.monotonic_ns() + 2 * python_events.FLUSH, 0)
    events.close()
    events.step(2, 0, time.monotonic_ns() + 4 * python_events.FLUSH, 0)  # of a slow program that goes on
    assert not events.file.lost
    (path,) = events.files
    found = record_file.read(path).records
    assert found["type"].tolist().count(python_events.STEP) == 1


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file without records."""
    return record_file.RecordFile("opencl", tmp_path, window=WINDOW * 64).path


def records(*numbers: int, count: int = 0) -> bytes:
    """A window that begins with how many were appended, or what was appended."""
    rows = np.zeros(WINDOW, record_file.RECORD)
    rows["type"][0], rows["t0"][0] = 255, count
    for at, number in enumerate(numbers, 1):
        rows["type"][at], rows["corr"][at] = record_file.CALL, number
    return rows.tobytes()


@pytest.mark.parametrize(
    ("window", "appended", "expected"),
    [
        pytest.param(records(1, 2, 3), b"", [1, 2, 3], id="nothing appended"),
        pytest.param(records(8, 9, count=1), records(*range(1, 8)), [1, 2, 3, 4, 5, 6, 7, 8, 9], id="one appended"),
        pytest.param(records(count=1), records(*range(1, 8)), [1, 2, 3, 4, 5, 6, 7], id="just cleared"),
        pytest.param(records(*range(1, 8)), records(*range(1, 8)), [1, 2, 3, 4, 5, 6, 7], id="appended, not cleared"),
        pytest.param(records(*range(1, 8)), records(*range(1, 8))[:200], [1, 2, 3, 4, 5, 6, 7], id="half appended"),
        pytest.param(records(4, 5), records(*range(1, 8)), [1, 2, 3, 4, 5, 6, 7], id="appended, half cleared"),
    ],
)
def test_every_record_is_read_once(written: Path, window: bytes, appended: bytes, expected: list[int]) -> None:
    with open(written, "ab") as file:
        file.write(window + appended)
    _, found = record_file.read(written)
    assert found["corr"][found["type"] == record_file.CALL].tolist() == expected
