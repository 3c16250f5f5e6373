"""Recordings of others are read as they are meant: old words and new, any layout, stacks, memory, addresses."""

import gzip
import json

import pytest
from kineto.written import call, kineto_json

from syncscope import kineto
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Lane


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
