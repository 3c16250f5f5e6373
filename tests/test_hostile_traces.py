"""Recordings of strangers: what is whole is used, in a time that grows with the text, and memory has an end."""

import gzip
import io
import json
import time

import pytest
from click.testing import CliRunner

import syncscope
from syncscope import kineto
from syncscope.cli import commands
from syncscope.errors import UserError
from syncscope.kineto.scan import MOST

HEAD = b'{"traceEvents":['
KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": {"correlation": 1}}
CALL = {
    "ph": "X",
    "cat": "cuda_runtime",
    "name": "cudaStreamSynchronize",
    "pid": 1,
    "tid": 1,
    "ts": 9,
    "dur": 7,
    "args": {},
}


def text(*events: dict, **head) -> bytes:
    whole = [{"ph": "X", "pid": 1, "tid": 1, "args": {}, **event} for event in events]
    return json.dumps({**head, "traceEvents": [KERNEL, CALL, *whole]}).encode()


def steps(*names: str, **more) -> list[dict]:
    return [{"cat": "user_annotation", "name": n, "ts": 20 * i, "dur": 20, **more} for i, n in enumerate(names)]


def report(content: bytes):
    return syncscope.report(io.BytesIO(content))


@pytest.mark.parametrize(
    "unit",
    [
        b'{"a":},{"ph":',
        b'{"ph":"x},{"ph":"x',
        b'{"a":}]' + b" " * 40,
        b'{"ph":nan},',
        b"[" * 20,
        b'{"args":',
        b'},{"ph":',
        b"}" + b" " * 60,
    ],
)
def test_broken_text_is_read_in_a_time_that_grows_as_it_does(unit):
    def seconds(size: int) -> float:
        content = HEAD + unit * (size // len(unit))
        began = time.process_time()
        with pytest.raises(UserError):
            kineto.read(content)
        return time.process_time() - began

    seconds(1 << 13)
    for _ in range(10):  # of which others may disturb most
        small, large = min(seconds(1 << 16) for _ in range(2)), seconds(1 << 19)
        if large < 24 * small + 0.3:
            break
    assert large < 24 * small + 0.3, "eight times the text; the square would be sixty-four times the time"


@pytest.mark.parametrize("command", ["report", "ranks", "diff", "roofline"])
def test_every_command_that_reads_a_recording_takes_the_limit(command, tmp_path, monkeypatch):
    path = tmp_path / "run.pt.trace.json.gz"
    path.write_bytes(gzip.compress(HEAD + b",".join(json.dumps(CALL).encode() for _ in range(9)) + b"]}"))
    limits = []

    def read(source, most=MOST):
        limits.append(most)
        raise UserError("enough")

    monkeypatch.setattr(kineto, "read", read)
    arguments = [command, *[str(path)] * (2 if command == "diff" else 1)]
    for given, limit in (([], MOST), (["--max-size", "0.5"], 1 << 29)):
        CliRunner().invoke(commands, [*arguments, *given])
        assert limits[-1] == limit


def test_a_bomb_is_read_up_to_the_limit_and_that_is_said():
    bomb = gzip.compress(HEAD + b" " * 50_000_000, 1)
    assert "no whole event" not in str(kineto.read(bomb, 1 << 20).meta["notes"])
    (note, *_) = kineto.read(bomb, 1 << 20).meta["notes"]
    assert "more than 0.000977 GiB of text (--max-size takes more)" in note
    events = gzip.compress(HEAD + b",".join(json.dumps(CALL).encode() for _ in range(100_000)) + b"]}")
    assert 5_000 < len(kineto.read(events, 1 << 20)) < 20_000
    assert len(kineto.read(events)) == 100_000
    small = gzip.compress(HEAD + b'{"ph":"X","ts":1},' * 1_000_000)
    assert len(kineto.read(small, 16 << 20)) < 600_000, "events of a few bytes count as large ones"


def test_unpacking_takes_no_more_memory_than_a_few_pieces():
    import tracemalloc

    bomb = gzip.compress(HEAD + b" " * 200_000_000, 1)
    tracemalloc.start()
    kineto.read(bomb, 30_000_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150_000_000


def test_keys_without_end_beside_the_events():
    with pytest.raises(UserError, match="has no list of traceEvents"):
        kineto.read(b'{"a":"' + b"x" * 40_000_000)
    trace = kineto.read(text()[:-1] + b',"a":[' + b"{}," * 6_000_000)
    assert len(trace) == 2
    assert any("more than 16 MiB" in note for note in trace.meta["notes"])


def test_a_recording_that_is_cut_off_before_its_first_event_is_said_to_be():
    whole = b'{"deviceProperties":[{"name":"' + b"x" * 3000 + b'"}],' + text().removeprefix(b"{")
    for content in (whole[:2000], gzip.compress(whole[:2000])[:-8]):
        with pytest.raises(UserError, match="ends before its list of traceEvents"):
            kineto.read(content)


def test_a_million_levels_of_json_are_refused():
    for content in (HEAD + b"[" * 1_000_000, HEAD + b'{"args":' * 1_000_000):
        with pytest.raises(UserError, match="no whole event"):
            kineto.read(content)
    deep = text().replace(b'{"traceEvents"', b'{"deviceProperties":' + b"[" * 900 + b"]" * 900 + b',"traceEvents"')
    assert len(report(deep).trace) == 2


def test_a_step_of_negative_length_is_left_out():
    spoilt = steps(*(f"ProfilerStep#{n}" for n in range(5)))
    spoilt[2]["dur"] = -7
    found = report(text(*spoilt))
    assert [s.index for s in found.steps] == [0, 1, 3, 4]
    assert any("1 broken event left out" in note for note in found.notes)


@pytest.mark.parametrize("odd", ["NaN", "sNaN", "Infinity", "-inf", "1e999999999", [], {}, None, True])
def test_a_time_that_is_none_costs_one_event(odd):
    for key in ("ts", "dur"):
        content = text(
            {"cat": "cpu_op", "name": "a", "ts": 1e15, "dur": 1, key: odd}, {"cat": "cpu_op", "name": "b", "ts": 1}
        )
        names = [event.name for event in report(content).trace]
        assert "b" in names
        assert "k" in names


def test_numbers_of_ten_thousand_digits_end_nothing():
    many = "1" * 10_000
    found = report(text(*steps(*(f"ProfilerStep#{many}{n}" for n in range(5)))))
    assert [s.index for s in found.steps] == [0, 1, 2, 3, 4]
    frames = {"cat": "cpu_op", "name": "aten::x", "ts": 1, "dur": 2, "args": {"Call stack": f"a.py({many}): f"}}
    calls = {"cat": "python_function", "name": f"a.py({many}): f", "ts": 1, "dur": 3}
    assert not any(event.place for event in report(text(frames, calls)).trace)


def test_utf_16_is_named():
    with pytest.raises(UserError, match="UTF-16"):
        report(text().decode().encode("utf-16"))


def test_work_of_a_device_that_is_not_known_is_named():
    work = [{"cat": "mtia_ccp_events", "name": "k", "ts": n, "dur": 1} for n in range(1200)]
    content = json.dumps({"traceEvents": [{"ph": "X", "pid": 0, "tid": 7, **event} for event in work]}).encode()
    found = report(content)
    assert "this recording has 1,200 mtia_ccp_events, which syncscope does not know" in found.verdict
    from syncscope.exporters import terminal

    assert "No device worked" not in terminal.export(found)
    assert "unknown" not in kineto.read(text(*work)).meta, "a device that is known worked"


def test_what_only_a_stranger_writes():
    """Found by tests/fuzz_traces.py."""
    own = {
        "lanes": [[[], 1, 1, 1, -1, "a"], [0, {}, 1, 7, 0, "b"]],
        "meta": {"devices": 5, "notes": [3, "n"], "clocks": {"a": 1}},
    }
    found = report(text(syncscope=own))
    assert "n" in found.notes
    assert "devices" not in found.trace.meta
    report(text({"cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "args": {"Call stack": 7}}))
    from syncscope.exporters import terminal

    assert "device" in terminal.export(report(text(deviceProperties=[{}])))


def test_a_detail_that_is_no_utf8_is_read():
    op = b'{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Input Dims":["\xff"]}}'
    trace = kineto.read(HEAD + op + b"," + json.dumps(KERNEL).encode() + b"]}")
    assert len(trace) == 2
