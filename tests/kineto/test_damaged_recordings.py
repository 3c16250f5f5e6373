"""Damaged recordings cost what is damaged, and no more: files that end early, values of any type, what nobody can read."""

import gzip
import io
import json
import re
import zlib
from random import Random

import hypothesis.strategies as st
import pytest
from effort import draws
from hypothesis import given, settings
from kineto.written import call, kineto_json

from syncscope import kineto
from syncscope.analysis.summary import summarize
from syncscope.errors import UserError
from syncscope.kineto.values import has_huge


@given(st.text("0123456789.,-e", max_size=60), st.integers(18, 21))
def test_an_integer_of_more_than_61_bits_is_seen_and_fractions_are_none(text, digits):
    for one in (text, f"{text}{'7' * digits}{text}", f"0.{'0' * digits}"):
        assert has_huge(one.encode()) == bool(re.search(r"(?<![\d.])\d{19}", one))


def test_a_truncated_file_gives_what_is_whole(tmp_path):
    text = kineto_json(*(call(i) for i in range(1000)))
    trace = kineto.read(text[: len(text) // 2])
    assert 450 < len(trace) < 550
    assert any("ends inside" in note for note in trace.meta["notes"])
    packed = gzip.compress(text)
    short = kineto.read(io.BytesIO(packed[: len(packed) // 2]))
    assert 100 < len(short) < 1000
    assert any("gzip data ends too early" in note for note in short.meta["notes"])
    flipped = bytearray(gzip.compress(zlib.compress(text) + text[:0], 1) and packed)
    flipped[len(packed) // 2] ^= 0xFF
    damaged = kineto.read(bytes(flipped))
    assert damaged.meta["notes"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        pytest.param("v100_resnet50_train_workers0_6steps.pt.trace", 1.0, marks=pytest.mark.slow),
        ("h100_qwen1.5_infer_stacks", 0.3),
    ],
)
def test_events_that_stand_in_a_file_twice_are_used_once(shared, name, part):
    """A recording that was appended to itself, whole or in part, is what it was: nothing of it was lost."""
    with gzip.open(shared / "traces" / f"{name}.json.gz") as file:
        told = json.load(file)
    events, random = told["traceEvents"], Random(1)
    again = [event for event in events if random.random() < part]
    known = kineto.read(json.dumps(told).encode())
    found = kineto.read(json.dumps({**told, "traceEvents": [*events, *again]}).encode())
    notes = found.meta["notes"]
    assert "events stand in the file more than once: each is used once" in notes.pop()
    assert abs(len(found) - len(known)) < 0.01 * len(known), "but for events that nothing tells apart"
    assert summarize(found).answer == summarize(known).answer


def test_short_events_of_one_name_may_begin_together():
    ops = [{"ph": "X", "cat": "cpu_op", "name": "aten::view", "pid": 1, "tid": 1, "ts": 5, "dur": 0}] * 3
    assert len(kineto.read(kineto_json(*ops, call(6, args={"correlation": 7})))) == 4


def test_damage_costs_only_the_event_it_hits():
    text = kineto_json(*(call(i) for i in range(100))).replace(b'"ts": 50,', b'"ts": 5@#,')
    trace = kineto.read(text)
    assert len(trace) == 99
    assert "1 broken event left out" in trace.meta["notes"][-1]
    assert "byte" in trace.meta["notes"][-1]


def test_what_kineto_is_known_to_write_wrong_is_mended():
    text = kineto_json(call(1, args={"correlation": 4, "occupancy": 0}), call(2), call(3, args=["odd"]), call(4))
    text = text.replace(b'"occupancy": 0', b'"occupancy": -nan').replace(b'"cudaLaunchKernel"', b'"C:\\Users\\x"', 1)
    text = text.replace(b'"cudaLaunchKernel"', b'"caf\xe9"', 1)
    trace = kineto.read(text)
    assert [e.name for e in trace] == ["C:\\Users\\x", "caf�", "cudaLaunchKernel", "cudaLaunchKernel"]
    assert trace[0].correlation == 4
    assert "notes" not in trace.meta


SMALL = kineto_json(
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
    call(1.25, args={"correlation": 4, "External id": 2, "Input Dims": [[1, 2], []]}),
    {"ph": "B", "name": "x", "pid": 1, "tid": 1, "ts": 3, "cat": "cpu_op"},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 4},
    call("7", cat="kernel", tid="stream 7", args={"device": 0, "stream": 7, "correlation": 4, "bytes": "12"}),
    baseTimeNanoseconds=12,
    deviceProperties=[{"id": 0}, {"id": 1}],
)
DAMAGE = st.tuples(
    st.integers(0, len(SMALL)), st.integers(0, 40), st.binary(max_size=12) | st.sampled_from([b"[", b'"', b"{"])
)


@settings(max_examples=draws(60))
@given(st.lists(DAMAGE, min_size=1, max_size=4), st.booleans())
def test_no_damage_does_more_than_lose_events(damage, packed):
    text = gzip.compress(SMALL, mtime=0) if packed else SMALL
    for at, length, new in damage:
        text = text[:at] + new + text[at + length :]
    try:
        trace = kineto.read(text)
    except UserError:
        return
    assert kineto.read(kineto.write(trace)) == trace


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([1]) | st.just({"a": 1})
KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]
ARGS = [
    "External id",
    "correlation",
    "device",
    "stream",
    "bytes",
    "Input Dims",
    "Input type",
    "Call stack",
    "place",
    "column",
]


@settings(max_examples=draws(60))
@given(
    st.lists(
        st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4).map(lambda odd: call(1, args={}) | odd)
        | st.dictionaries(st.sampled_from([*ARGS, "flags", "as", "detail"]), ODD, max_size=5).map(
            lambda a: call(2, args=a)
        ),
        max_size=5,
    ),
    st.dictionaries(st.sampled_from(["syncscope", "baseTimeNanoseconds", "deviceProperties", "distributedInfo"]), ODD),
)
def test_values_of_any_type_are_read_or_left_out(events, head):
    try:
        trace = kineto.read(kineto_json(*events, **head))
    except UserError as error:
        assert "no whole event" in error.message  # noqa: PT017  not raising is as good
        return
    assert len(trace) <= len(events)
    assert kineto.read(kineto.write(trace)) == trace


@pytest.mark.parametrize("text", [b"", b"not a trace", b'{"hello": 1}', b"\x00" * 100, b"[1, 2, 3"])
def test_hopeless_input_is_the_users_error_with_the_name(tmp_path, text):
    path = tmp_path / "odd.json"
    path.write_bytes(text)
    with pytest.raises(UserError, match=r"odd\.json"):
        kineto.read(path)


def test_missing_files_and_unknown_protocols_are_named(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        kineto.read(tmp_path / "none.json")
    pytest.importorskip("fsspec")
    with pytest.raises(UserError, match="nosuch://"):
        kineto.read("nosuch://host/run.json")
