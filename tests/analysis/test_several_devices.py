"""Several devices in one process: how busy each is, and not only any of them."""

import json

import pytest
from click.testing import CliRunner

from syncscope import kineto
from syncscope.analysis.summary import summarize
from syncscope.cli import commands
from syncscope.model.trace import Event, Kind, Lane, Trace

MS = 1_000_000


def on_two(*rows):
    """Six steps of as many ms as a row is long, in which the device of each row works where a letter is drawn."""
    length, events = len(rows[0]) * MS, []
    for step in range(6):
        since = step * length
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), since, length))
        for device, row in enumerate(rows):
            if not (drawn := row.strip(".")):
                continue
            number, start = 10 * step + device, since + row.index(drawn) * MS
            events.append(
                Event(Kind.CALL, "cudaLaunchKernel", Lane(1, 1), since + device * 3_000, 2_000, correlation=number)
            )
            events.append(
                Event(
                    Kind.KERNEL,
                    "gemm",
                    Lane(0, 7, device),
                    max(start, since + 9_000),
                    len(drawn) * MS - 9_000,
                    correlation=number,
                )
            )
        events.append(Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), since + 10_000, length - 12_000))
    return Trace.of(events)


def test_two_devices_that_work_by_turns_are_each_half_busy():
    report = summarize(on_two("AAAAA......", ".....BBBBBB"))
    assert [number for number, _ in report.busy_by_device] == [0, 1]
    assert [share for _, share in report.busy_by_device] == pytest.approx([5 / 11, 6 / 11], abs=0.02)
    assert report.device_busy == pytest.approx(1, abs=0.02)
    assert report.busiest == pytest.approx(6 / 11, abs=0.02)
    assert "they work by turns" in report.uses.words
    assert "only less work" not in report.uses.words


def test_a_device_that_idles_is_not_hidden_by_one_that_does_not():
    report = summarize(on_two("AAAAAAAAAAA", "...BBB....."))
    assert [share for _, share in report.busy_by_device] == pytest.approx([1, 3 / 11], abs=0.02)
    assert "only less work" in report.uses.words, "of the busiest that is so"


def test_one_device_has_one_figure():
    assert summarize(on_two("AAAAA......", "...........")).busy_by_device == ()


def test_each_is_told_at_the_terminal_and_in_json(tmp_path):
    path = tmp_path / "two.json"
    kineto.save(on_two("AAAAA......", ".....BBBBBB"), path)
    told = CliRunner(env={"COLUMNS": "140"}).invoke(commands, ["report", str(path)], standalone_mode=False).stdout
    assert "(device 1); one or another" in told
    found = CliRunner().invoke(commands, ["report", str(path), "--format", "json"], standalone_mode=False).stdout
    assert [one["device"] for one in json.loads(found)["busy_by_device"]] == [0, 1]
