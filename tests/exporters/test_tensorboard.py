"""What the two profiler tabs of TensorBoard make of our files, by their own parsers where they are installed."""

import dataclasses
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from syncscope import kineto
from syncscope.exporters import tensorboard, terminal
from syncscope.exporters._owners import with_owners
from syncscope.exporters._protobuf import messages, number, numbers, text, varint, varints, written
from syncscope.exporters._xplane import xspace
from syncscope.model.report import Report
from syncscope.model.trace import WAITS, Event, Flag, Kind, Lane, Trace

MS = 1_000_000  # ns
STEPS = 4
WAIT = "host waits 5.00 ms: train.py:5 nonzero"


pytestmark = pytest.mark.filterwarnings("ignore:The copy keyword")  # torch_tb_profiler with pandas 3


@pytest.fixture
def files(report, tmp_path):
    return tensorboard.write(report, tmp_path)


def row_of_waits(file: Path) -> list[dict[str, Any]]:
    """What other viewers have in the row of waits of a file."""
    told = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in told if e["name"] == "thread_name"}
    return [e for e in told if e["ph"] == "X" and rows.get((e["pid"], e["tid"]), "").startswith(WAITS)]


def fields(message: bytes) -> dict[int, list]:
    """A protobuf message as lists of values by field number."""
    found: dict[int, list] = {}
    at = 0

    def integer() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value

    while at < len(message):
        tag = integer()
        value = integer()
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        else:
            assert tag & 7 == 0
        found.setdefault(tag >> 3, []).append(value)
    assert at == len(message)
    return found


def test_a_column_is_written_as_its_values_one_by_one():
    values = np.array([0, 1, 127, 128, 300, 2**31, 2**62, -1])
    assert written(varints(values)) == b"".join(varint(int(v)) for v in values)
    assert written(numbers(3, values)) == b"".join(number(3, int(v)) for v in values)
    there = values > 200
    assert written(messages(4, [numbers(1, values), numbers(2, values)], there)) == b"".join(
        text(4, number(1, int(v)) + number(2, int(v))) for v in values[there]
    )


def test_the_xspace_holds_every_event_where_and_when_it_was(trace):
    space = fields(b"".join(xspace(trace, "here")))
    assert space[4] == [b"here"]
    planes = {fields(p)[2][0]: fields(p) for p in space[1]}
    assert list(planes) == [b"/host:CPU", b"/device:GPU:0"]
    for plane, device in zip(planes.values(), (-1, 0), strict=True):
        names = {fields(e)[1][0]: fields(fields(e)[2][0])[2][0].decode() for e in plane[4]}
        (line,) = map(fields, plane[3])
        seen = [(names[e[1][0]], e[2][0], e[3][0]) for e in map(fields, line[4])]
        assert seen == [
            ("step" if e.kind is Kind.STEP else e.name, e.start * 1000, e.duration * 1000)
            for e in trace
            if e.lane.device == device
        ]


def test_files_lie_where_the_viewers_look(files, tmp_path):
    one, other, page, curve = (str(f.relative_to(tmp_path)) for f in files)
    host = os.path.basename(one).partition("_")[0]
    assert one == f"train/{host}_4242.0.pt.trace.json.gz"
    assert other == f"plugins/profile/train/{host}.xplane.pb"
    assert page == f"train/{host}_4242.0.page.json.gz"
    assert curve == "progress/events.out.tfevents.0000000000.000000.syncscope"
    assert sorted(f for _, _, names in os.walk(tmp_path) for f in names) == sorted(f.name for f in files)


def test_a_second_export_is_a_run_of_its_own(report, files, tmp_path):
    again = tensorboard.write(report, tmp_path)
    assert [f.relative_to(tmp_path).parts[0] for f in (files[0], again[0])] == ["train", "train-2"]
    assert again[1].parent.name == "train-2"


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("logs/today/host_42.1700.pt.trace.json.gz", "today"),
        ("host_42.1700.pt.trace.json", "host_42.1700"),
        ("traces/qwen1.5.json.gz", "qwen1.5"),
        ("", "syncscope"),
    ],
)
def test_a_run_keeps_its_name(name, run):
    assert tensorboard.run_of(name) == run


def test_the_recording_can_be_read_back(files, trace):
    assert kineto.read(files[0]) == trace
    assert [event["name"] for event in row_of_waits(files[0])] == [WAIT] * STEPS


def test_a_recording_has_as_many_events_from_its_file_as_in_the_run_that_made_it(report, files, trace):
    there = terminal.export(dataclasses.replace(report, trace=trace))
    read = terminal.export(dataclasses.replace(report, trace=kineto.read(files[0])))
    counts = [re.findall(r"· ([\d,]+) events ·", said) for said in (there, read)]
    assert counts[0] == counts[1] == [f"{len(trace):,}"]


def test_an_export_of_an_export_has_each_wait_once(report, files, tmp_path):
    again = tensorboard.write(dataclasses.replace(report, trace=kineto.read(files[0])), tmp_path)
    assert kineto.read(again[0]) == kineto.read(files[0])
    assert [(e["name"], e["ts"]) for e in row_of_waits(again[0])] == [
        (e["name"], e["ts"]) for e in row_of_waits(files[0])
    ]


def test_waits_say_what_is_known_of_them(report):
    first = next(iter(tensorboard.waits(report)))
    assert first.name == WAIT
    assert json.loads(first.detail)["about"] == (
        "train.py:5; for it the device had nothing to do for 1.00 ms; "
        "a step is 100 us to 2.00 ms shorter without this line's syncs; rule nonzero; "
        "rewrite: torch.where instead of index assignment (safe)"
    )


def test_each_thread_that_waits_has_a_row(report):
    reads = [dataclasses.replace(r, thread=i % 2, place=None) for i, r in enumerate(report.reads)]
    spans = list(tensorboard.waits(dataclasses.replace(report, reads=tuple(reads))))
    assert [s.lane.thread - tensorboard.ROW for s in spans] == [0, 1, 0, 1]
    assert spans[0].name == "host waits 5.00 ms: nonzero"


def test_a_recording_without_a_report_has_the_reads_its_recorder_saw(trace, tmp_path):
    events = row_of_waits(tensorboard.save(trace, tmp_path)[0])
    spans = [(e["name"], e["ts"], e["dur"], e["args"]["place"]) for e in events]
    read = "host waits 6.00 ms: train.py:5 nonzero"
    assert spans == [(read, 2000 + 10_000 * i, 6000, "train.py:5") for i in range(STEPS)]


def test_a_recording_too_large_loses_the_short_and_never_a_wait():
    host, queue = Lane(1, 1), Lane(1, 7, 0)
    events = [Event(Kind.OP, "aten::add", host, i, 1 + i % 7) for i in range(100)]
    events += [Event(Kind.STEP, "ProfilerStep#0", host, 0, 100), Event(Kind.READ, "item", host, 50, 1)]
    events += [Event(Kind.CALL, "wait", host, 51, 1, flags=Flag.BLOCKING)]
    events += [
        Event(Kind.CALL, "launch", host, 3, 1, correlation=5),
        Event(Kind.KERNEL, "mm", queue, 4, 1, correlation=5),
    ]
    trace = Trace.of(events)
    cut = tensorboard.fit(trace, 19)
    kept = [e.name for e in cut]
    assert sorted(set(kept)) == ["ProfilerStep#0", "aten::add", "item", "launch", "mm", "wait"]
    assert {e.duration for e in cut if e.name == "aten::add"} == {7}
    assert len(cut) == 19
    assert cut.meta["notes"] == ["86 of 105 events left out, the shortest first; --steps A:B has part of it in full"]
    assert [e.name for e in tensorboard.fit(trace, 1)] == ["ProfilerStep#0", "item", "wait"]
    assert tensorboard.fit(trace, 105) is trace


def test_without_a_recording_there_is_nothing_to_open(tmp_path):
    with pytest.raises(ValueError, match="only a report of a recording"):
        tensorboard.write(Report(), tmp_path)


def test_torch_tb_profiler_has_overview_operator_and_kernel_views(files):
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="pip install torch-tb-profiler")
    loader = pytest.importorskip("torch_tb_profiler.profiler.run_generator")
    from torch_tb_profiler.io import Cache

    profile = data.RunProfileData.parse("worker", None, str(files[0]), Cache())
    profile.process()
    run = loader.RunGenerator("worker", None, profile).generate_run_profile()
    assert [s.split("<")[0] for s in profile.steps_names] == [str(i) for i in range(STEPS)]
    assert profile.has_kernel
    assert profile.gpu_metrics_parser.gpu_utilization[0] == pytest.approx(24 / 39)
    operators = {row["name"]: row for row in run.operation_table_by_name["data"]}
    assert operators["aten::conv2d"]["device_self_duration"] == STEPS * 6000
    assert operators["aten::nonzero"]["calls"] == STEPS
    kernels = [row[:4] for row in run.kernel_table["data"]["rows"]]
    assert kernels[0][0] == "conv2d"
    assert run.overview["steps"]["rows"]


def test_xprof_has_timeline_kernels_and_named_waits(files):
    tool = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="pip install xprof")

    def ask(name: str, **options) -> dict:
        answer, _ = tool.xspace_to_tool_data([str(files[1])], name, {"tqx": "", "hosts": [], **options})
        return json.loads(answer)

    timeline = ask("trace_viewer@", trace_viewer_options={})["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in timeline if e.get("name") == "thread_name"}
    spans = [e for e in timeline if e.get("ph") == "X"]
    assert sum(e["name"] == "conv2d" for e in spans) == STEPS
    waits = [e for e in spans if e["name"] == WAIT]
    assert [(e["ts"], e["dur"]) for e in waits] == [(2000 + 10_000 * i, 6000) for i in range(STEPS)]
    assert WAITS in rows[waits[0]["pid"], waits[0]["tid"]]
    wanted = {
        "event_name": WAIT,
        "start_time_ms": "2.0",
        "duration_ms": "6.0",
        "unique_id": str(waits[0]["args"]["uid"]),
    }
    (clicked,) = [e for e in ask("trace_viewer@", trace_viewer_options=wanted)["traceEvents"] if e.get("ph") == "X"]
    assert "rewrite: torch.where" in clicked["args"]["about"]
    (kernel,) = [[cell["v"] for cell in row["c"]] for row in ask("kernel_stats")["rows"]]
    assert kernel[1] == "conv2d"
    assert kernel[9:12] == ["aten::conv2d:conv2d", STEPS, 6000.0 * STEPS]


def test_calls_belong_to_the_operator_in_which_they_were_made():
    host, other, queue = Lane(1, 1), Lane(1, 2), Lane(1, 7, 0)
    trace = with_owners(
        Trace.of(
            [
                Event(Kind.OP, "outer", host, 0, 100, external=1),
                Event(Kind.OP, "inner", host, 10, 20),
                Event(Kind.OP, "elsewhere", other, 0, 100, external=3),
                Event(Kind.CALL, "in inner", host, 15, 5, 501, 501),
                Event(Kind.CALL, "in outer", host, 30, 5, 502, 502),
                Event(Kind.CALL, "in none", host, 100, 5, 503, 503),
                Event(Kind.CALL, "knows its own", other, 120, 5, 504, 1),
                Event(Kind.KERNEL, "of inner", queue, 16, 5, 501, 501),
                Event(Kind.KERNEL, "of none", queue, 101, 5, 503, 503),
                Event(Kind.KERNEL, "knows its own too", queue, 121, 5, 504, 1),
            ]
        )
    )
    names = {e.external: e.name for e in trace if e.kind is Kind.OP} | {-1: None}
    assert {e.name: names[e.external] for e in trace if e.kind is not Kind.OP} == {
        "in inner": "inner",
        "in outer": "outer",
        "in none": None,
        "knows its own": "outer",
        "of inner": "inner",
        "of none": None,
        "knows its own too": "outer",
    }


@pytest.mark.parametrize(
    "events",
    [
        [],
        [Event(Kind.OP, "alone", Lane("a process", "a thread"), -500, 100)],
        [Event(Kind.KERNEL, "nobody's", Lane(0, "a queue", 1), 5, 10), Event(Kind.COPY, "copy", Lane(0, 3, 1), 5, 10)],
        [
            Event(Kind.OP, "\u00e9 \x00 \n\\", Lane(1, 1), 0, 1),
            Event(Kind.OTHER, "", Lane(1, 2), 0, 0, detail="no json"),
        ],
    ],
    ids=["nothing", "before the origin", "only a device", "odd names"],
)
def test_whatever_is_in_a_recording_it_can_be_written(events, tmp_path):
    trace = Trace.of(events)
    json_file, xplane = tensorboard.save(trace, tmp_path)
    assert len(kineto.read(json_file)) == len(trace)
    planes = [fields(plane) for plane in fields(xplane.read_bytes())[1]]
    written = sum(len(fields(line).get(4, [])) for plane in planes for line in plane.get(3, []))
    assert written == sum(event.kind is not Kind.OTHER for event in events)


def test_the_ranks_of_a_job_are_curves_side_by_side(report, tmp_path):
    for rank in (0, 1, 0):
        trace = dataclasses.replace(report.trace, meta=report.trace.meta | {"rank": rank, "world_size": 2})
        tensorboard.write(dataclasses.replace(report, trace=trace), tmp_path)
    points = {f"rank{rank}": len(list((tmp_path / "progress" / f"rank{rank}").iterdir())) for rank in (0, 1)}
    assert points == {"rank0": 2, "rank1": 1}


def test_figures_over_all_recordings_are_points_of_tensorboards_own_curves(report, tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tensorboard.write(report, tmp_path)
    tensorboard.write(dataclasses.replace(report, saving=0.7 * MS), tmp_path)
    curves = loader.EventAccumulator(str(tmp_path / "progress"))
    curves.Reload()
    assert [(point.step, round(point.value, 3)) for point in curves.Scalars("syncscope/saving_ms")] == [
        (0, 1.4),
        (1, 0.7),
    ]
    assert [round(point.value, 3) for point in curves.Scalars("syncscope/step_ms")] == [9.0, 9.0]
    assert set(curves.Tags()["scalars"]) == {
        f"syncscope/{n}" for n in ("step_ms", "saving_ms", "reads_per_step", "device_busy")
    }


@pytest.mark.parametrize("begin", [0, 777_000_000_123, 1_700_000_000_123_456_789], ids=["zero", "boot", "1970"])
def test_steps_that_meet_stay_apart_where_a_viewer_adds_floats(tmp_path, begin):
    """Each of 400 steps begins with the nanosecond in which the one before ends, and its operator ends with it."""
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="pip install torch-tb-profiler")
    from torch_tb_profiler.io import Cache
    from torch_tb_profiler.profiler import op_tree

    host, events, at = Lane(1, 1), [], begin
    for n in range(400):
        length = 1_000_003 + 7919 * n % 4096
        events += [
            Event(Kind.STEP, f"ProfilerStep#{n}", host, at, length),
            Event(Kind.OP, "aten::mm", host, at + 1013 + n, length - 1013 - n, external=n),
        ]
        at += length
    trace = Trace.of(events)
    (file, *_) = tensorboard.save(trace, tmp_path)
    profile = data.RunProfileData.parse("worker", None, str(file), Cache())
    with mock.patch.object(op_tree.logger, "error") as complains:
        profile.process()
    assert not complains.called
    (tree,) = profile.tid2tree.values()
    assert [[child.name for child in step.children] for step in tree.children] == [["aten::mm"]] * 400
    lost = trace.duration - kineto.read(file).duration
    assert lost.min() >= 0
    assert lost.max() <= max(2, 3000 * np.spacing(at / 1000))
