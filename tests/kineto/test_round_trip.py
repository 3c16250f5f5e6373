"""What is written is read back, whole: any events, lines and functions, allocations, and every real trace."""

import dataclasses
import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from effort import draws
from hypothesis import given, settings
from kineto.written import call, kineto_json

from syncscope import kineto
from syncscope.errors import UserError
from syncscope.exporters import tensorboard
from syncscope.model.memory import Allocations
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Meta, Trace

INT64 = st.integers(-(2**60), 2**60)
LANES = st.builds(
    Lane,
    process=st.integers(0, 2**31) | st.text(max_size=5),
    thread=st.integers(-1, 2**40) | st.text(max_size=5),
    device=st.integers(-1, 3),
    label=st.text(max_size=5),
)
PLACES = st.none() | st.builds(Place, path=st.text(max_size=8), line=st.integers(1, 10**6))
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(Kind),
    name=st.text(max_size=8) | st.sampled_from(["ProfilerStep#3", "a.py(12): f", "}, {", "]"]),
    lane=LANES,
    start=INT64 | st.integers(0, 10**9),
    duration=st.integers(0, 2**60),
    correlation=st.integers(-1, 2**62),
    external=st.integers(-1, 2**62),
    bytes=st.integers(-1, 2**62),
    place=PLACES,
    caller=PLACES,
    forward=PLACES,
    function=st.just("") | st.text(max_size=4),
    column=st.integers(-1, 2**31 - 1),
    flags=st.sampled_from([Flag.NONE, Flag.BLOCKING, Flag.FALLBACK, Flag.BLOCKING | Flag.FALLBACK]),
    detail=st.just("") | st.text(min_size=1, max_size=8) | st.just('{"module": "é", "n": [1, {"ph": 2}, {"ph": 3}]}'),
)
OTHER_KEYS = st.text(max_size=6).filter(lambda key: key not in {*Meta.__annotations__, "events", "cls"})
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=draws(50))
@given(st.lists(EVENTS, max_size=12), st.dictionaries(OTHER_KEYS, JSON, max_size=3))
def test_what_is_written_is_read_back(events, meta):
    trace = Trace.of(events, **{"origin_ns": 7, "notes": ["a clock was guessed"], **meta})
    text = kineto.write(trace)
    assert kineto.read(text) == trace.visible()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no strict JSON"))


def test_no_file_says_what_is_to_be_pasted_into_a_shell():
    """A stranger's recording could have any command in what a report suggests."""
    trace = Trace.of([], origin_ns=7, recorder="syncscope", command="train.py; rm -rf ~", stands_for="cuda")
    meta = kineto.read(kineto.write(trace)).meta
    assert "command" not in meta
    assert meta["stands_for"] == "cuda"


LIBRARY, HOST, QUEUE = Place("/x/site-packages/zoo/model.py", 30), Lane(7, 8), Lane(0, 1, 0)
WITH_LINES = [
    Event(Kind.STEP, "ProfilerStep#0", HOST, 0, 9000),
    Event(Kind.CALL, "cuLaunchKernel", HOST, 1000, 500, correlation=1, place=Place("train.py", 5), function="step"),
    Event(Kind.KERNEL, "gemm", QUEUE, 2000, 1000, correlation=1),
    Event(Kind.CALL, "cuLaunchKernel", HOST, 3000, 500, correlation=2, place=LIBRARY, caller=Place("train.py", 6)),
    Event(Kind.KERNEL, "relu", QUEUE, 3600, 1000, correlation=2),
    Event(Kind.CALL, "cuLaunchKernel", HOST, 4000, 500, correlation=3, place=Place("train.py", 7), forward=LIBRARY),
    Event(Kind.KERNEL, "relu_back", QUEUE, 5000, 1000, correlation=3),
    Event(Kind.READ, "item", HOST, 6000, 900, place=LIBRARY, caller=Place("train.py", 8), function="Model.forward"),
    Event(Kind.CALL, "cuStreamSynchronize", HOST, 6100, 700, correlation=4, flags=Flag.BLOCKING, place=LIBRARY),
]


def test_lines_of_calls_are_written_once_and_read_back(golden):
    trace = Trace.of(WITH_LINES, origin_ns=10**18, recorder="syncscope")
    text = kineto.write(trace)
    golden("recording.json", text.decode())
    assert text.count(str(LIBRARY.path).encode()) == 2  # in the table, and where viewers show what was read
    again = kineto.read(text)
    assert again == trace
    assert [again.function(code) for code in again.place[again.rows(Kind.READ)]] == ["Model.forward"]


def test_a_recording_from_before_lines_were_noted():
    path = Path(__file__).parents[1] / "golden" / "recording.1.json"
    trace = kineto.read(path)
    assert b'"version":1,' in path.read_bytes()
    assert [str(event.place) for event in trace if event.kind == Kind.READ] == ["train.py:8"]
    assert [event.caller or event.forward or event.function for event in trace] == [""] * 9


@pytest.mark.parametrize(
    "table",
    [
        {"lines": 3},
        {"lines": [[0, 7, -9], [None, {}, 2.5], 4, []]},
        {"places": [[0, "x", 1], 5, [], ["a", True, None]]},
    ],
)
def test_no_table_of_lines(table):
    told = json.loads(kineto.write(Trace.of(WITH_LINES)))
    told["syncscope"] |= table
    trace = kineto.read(json.dumps(told).encode())
    assert len(trace) == len(WITH_LINES)
    assert all(isinstance(event, Event) for event in trace)


@pytest.mark.parametrize("most", [1_000_000, pytest.param(None, marks=pytest.mark.slow)], ids=["small", "all"])
def test_every_real_trace_survives_a_round_trip(shared, most):
    """Of each dialect some are small; the others are ten times the events, written in the same ways."""
    files = sorted((shared / "traces").rglob("*.json.gz"))
    assert len(files) == 29
    for file in files:
        if most is not None and file.stat().st_size > most:
            continue
        trace = kineto.read(file)
        assert "notes" not in trace.meta, file.name
        again = kineto.read(kineto.write(trace))
        for column in ("kind", "start", "duration", "correlation", "external", "bytes", "column", "flags"):
            assert (getattr(trace, column) == getattr(again, column)).all(), (file.name, column)
        assert again.meta == trace.meta
        some = slice(0, len(trace), max(1, len(trace) // 500))
        assert trace.take(some) == again.take(some)


ALLOCATIONS = st.tuples(
    st.integers(0, 10**9),
    st.integers(-1, 2**60),
    st.integers(-(2**52), 2**52),
    st.integers(-1, 2**60),
    st.integers(-1, 2**60),
    st.integers(0, 7),
    st.just(0),
    st.integers(-1, 0),
)


@settings(max_examples=draws(50))
@given(st.lists(ALLOCATIONS, min_size=1, max_size=9))
def test_allocations_are_read_back(rows):
    event = Event(Kind.READ, "item", Lane(1, 1), 0, 5, place=Place("train.py", 3))
    trace = dataclasses.replace(Trace.of([event], origin_ns=7), memory=Allocations.of(rows))
    assert kineto.read(kineto.write(trace)) == trace


def test_save_packs_by_suffix_and_leaves_no_half_written_file(tmp_path):
    trace = kineto.read(kineto_json(call(1), call(9)))
    for name in ("run.pt.trace.json", "run.pt.trace.json.gz"):
        kineto.save(trace, tmp_path / "new" / name)
        assert kineto.read(tmp_path / "new" / name) == trace
    assert (tmp_path / "new" / name).read_bytes()[:2] == b"\x1f\x8b"
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["run.pt.trace.json", "run.pt.trace.json.gz"]
    with pytest.raises(UserError, match="cannot be written"):
        kineto.save(trace, tmp_path / "new" / name / "inside-a-file.json")


def test_a_place_that_stands_twice_in_a_file_keeps_its_function(tmp_path):
    """A folder for TensorBoard adds the spans of waits, whose places stand behind the recording's own."""
    place = Place("train.py", 7)
    call = Event(Kind.CALL, "clFinish", Lane(1, 1), 0, 10, place=place, function="step")
    trace = tensorboard.merged(Trace.of([call]), [Event(Kind.ANNOTATION, "host waits", Lane(1, 2), 0, 10, place=place)])
    kineto.save(trace, tmp_path / "run.json")
    read = kineto.read(tmp_path / "run.json")
    assert {read.function(code) for code in read.place.tolist()} == {"step"}
