import dataclasses
import gzip
import io
import json
import re
import zlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
from effort import EFFORT
from hypothesis import given, settings

from syncscope import kineto
from syncscope.errors import UserError
from syncscope.exporters import tensorboard
from syncscope.kineto.values import has_huge
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


@settings(max_examples=50 * EFFORT)
@given(st.lists(EVENTS, max_size=12), st.dictionaries(OTHER_KEYS, JSON, max_size=3))
def test_what_is_written_is_read_back(events, meta):
    trace = Trace.of(events, **{"origin_ns": 7, "notes": ["a clock was guessed"], **meta})
    text = kineto.write(trace)
    assert kineto.read(text) == trace.visible()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no strict JSON"))


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


def test_lines_of_calls(golden):
    trace = Trace.of(WITH_LINES, origin_ns=10**18, recorder="syncscope")
    text = kineto.write(trace)
    golden("recording.json", text.decode())
    assert text.count(str(LIBRARY.path).encode()) == 2  # in the table, and where viewers show what was read
    again = kineto.read(text)
    assert again == trace
    assert [again.function(code) for code in again.place[again.rows(Kind.READ)]] == ["Model.forward"]


def test_a_recording_from_before_lines_were_noted():
    path = Path(__file__).parent / "golden" / "recording.1.json"
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


@settings(max_examples=50 * EFFORT)
@given(st.lists(ALLOCATIONS, min_size=1, max_size=9))
def test_allocations_are_read_back(rows):
    event = Event(Kind.READ, "item", Lane(1, 1), 0, 5, place=Place("train.py", 3))
    trace = dataclasses.replace(Trace.of([event], origin_ns=7), memory=Allocations.of(rows))
    assert kineto.read(kineto.write(trace)) == trace


def test_memory_events_of_torch_profiler_are_allocations_of_devices():
    def memory(ts, device, size, **more):
        args = {"Device Type": device, "Device Id": 0, "Bytes": size, "Addr": 7, **more}
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": ts, "args": args}

    total = {"Total Allocated": 4096, "Total Reserved": 8192}
    events = call(100, tid=2), memory(101.5, 1, 512, **total), memory(102, 0, 64, **total), memory(103, 1, -512)
    trace = kineto.read(kineto_json(*events))
    found = trace.memory
    assert found.time.tolist() == [1500, 3000]
    assert found.bytes.tolist() == [512, -512]
    assert found.total.tolist() == [4096, -1]
    assert [trace.lanes[lane].thread for lane in found.lane] == [2, 2]
    broken = kineto.read(kineto_json(call(1), memory("x", 1, 5), memory(2, 1, "much", Addr=[3])))
    assert broken.memory.bytes.tolist() == [-1]  # without a number
    nowhere = kineto.read(kineto_json(call(1), memory(2, 1, 5), memory(3, 1, 6) | {"pid": {"of": 1}, "tid": [2]}))
    assert nowhere.memory.bytes.tolist() == [5, 6]


@given(st.text("0123456789.,-e", max_size=60), st.integers(18, 21))
def test_an_integer_of_more_than_61_bits_is_seen_and_fractions_are_none(text, digits):
    for one in (text, f"{text}{'7' * digits}{text}", f"0.{'0' * digits}"):
        assert has_huge(one.encode()) == bool(re.search(r"(?<![\d.])\d{19}", one))


def kineto_json(*events, **head) -> bytes:
    return json.dumps({"schemaVersion": 1, **head, "traceEvents": list(events)}).encode()


def call(ts, dur=5, name="cudaLaunchKernel", **more):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} | more


def test_old_and_new_words_mean_the_same():
    old = kineto_json(
        {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 100, "dur": 5},
        {"ph": "X", "cat": "Operator", "name": "ProfilerStep#4", "pid": 9, "tid": "9", "ts": 100, "dur": 4},
        call(101, cat="Runtime", pid=9, tid="9", args={"correlation": 3, "external id": 12}),
        {
            "ph": "X",
            "cat": "Kernel",
            "name": "gemm",
            "pid": 0,
            "tid": "stream 7",
            "ts": "103",
            "dur": "2.5",
            "args": {"device": 0, "stream": 7, "correlation": 3, "external id": 12},
        },
    )
    trace = kineto.read(old)
    op, step, launch, kernel = trace
    assert [e.kind for e in trace] == [Kind.OP, Kind.STEP, Kind.CALL, Kind.KERNEL]
    assert op.lane == step.lane == launch.lane == Lane(9, 9)
    assert kernel.lane == Lane(0, 7, 0)
    assert (launch.external, kernel.correlation) == (12, 3)
    assert (kernel.start, kernel.duration) == (3000, 2500)
    assert trace.meta["origin_ns"] == 100_000


def test_nanoseconds_of_epoch_times_are_not_rounded():
    text = kineto_json(call(0), call(1)).replace(b'"ts": 0', b'"ts": 1712195495502094.565')
    text = text.replace(b'"ts": 1,', b'"ts": 1712195495502094.568,')
    trace = kineto.read(text)
    assert trace.start.tolist() == [0, 3]
    assert trace.meta["origin_ns"] == 1712195495502094565


@pytest.mark.parametrize("layout", [{"indent": 2}, {"separators": (",", ":")}, {}])
def test_layout_and_order_of_keys_do_not_matter(layout):
    events = [{k: e[k] for k in reversed(e)} for e in (call(1), call(20, args={"list": [{"id": 1}, {"id": 2}]}))]
    text = json.dumps({"traceEvents": events, "list": [{"id": 1}, {"id": 2}], "baseTimeNanoseconds": 5}, **layout)
    trace = kineto.read(text.encode())
    assert trace.start.tolist() == [0, 19_000]
    assert trace.meta["origin_ns"] == 1005


def test_a_bare_list_and_begin_end_pairs():
    begin, end = call(1, ph="B"), {"ph": "E", "pid": 1, "tid": 1, "ts": 4}
    trace = kineto.read(json.dumps([begin, end]).encode())
    assert trace.duration.tolist() == [3000]


def test_large_files_are_cut_into_batches(monkeypatch):
    monkeypatch.setattr("syncscope.kineto.scan.BATCH", 300)
    monkeypatch.setattr("syncscope.kineto.source.PIECE", 10)
    events = [
        call(i, cat="cpu_op", args={"Input Dims": [[i, 2], []], "odd": [{"ph": 1}, {"ph": 2}]}) for i in range(200)
    ]
    trace = kineto.read(kineto_json(*events))
    assert len(trace) == 200
    assert "notes" not in trace.meta
    assert json.loads(trace[150].detail) == {"Input Dims": [[150, 2], []]}


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


@settings(max_examples=60 * EFFORT)
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


@settings(max_examples=60 * EFFORT)
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


def test_urls_are_read_through_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://run.json.gz", "wb") as file:
        file.write(gzip.compress(kineto_json(call(1))))
    assert len(kineto.read("memory://run.json.gz")) == 1


def test_lines_come_from_stacks():
    stack = "/x/site-packages/torch/optim/sgd.py(66): step;/home/me/train.py(49): main;run.py(3): <module>"
    trace = kineto.read(
        kineto_json(
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "aten::mm",
                "pid": 1,
                "tid": 1,
                "ts": 1,
                "dur": 1,
                "args": {"Call stack": stack},
            },
            {"ph": "X", "cat": "python_function", "name": "train.py(12): step", "pid": 1, "tid": 1, "ts": 2, "dur": 1},
            {"ph": "X", "cat": "python_function", "name": "<built-in method f>", "pid": 1, "tid": 1, "ts": 3, "dur": 1},
        )
    )
    assert [e.place for e in trace] == [Place("/home/me/train.py", 49), Place("train.py", 12), None]


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


def test_what_only_our_files_say_is_one_value_in_those_of_others_and_large_numbers_stay_whole():
    other = kineto.read(
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"correlation": 7}}]}'
    )
    assert other.column.tolist() == [-1]
    assert other.flags.tolist() == [0]
    assert not other.column.flags.writeable
    assert other.correlation.tolist() == [7]
    large = kineto.read(
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"correlation": 5000000000}}]}'
    )
    assert large.correlation.tolist() == [5_000_000_000]
    again = kineto.read(kineto.write(large))
    assert again.correlation.tolist() == [5_000_000_000]
    assert again.column.tolist() == [-1]
