"""What each line takes of a step, on drawn timelines: a column is 100 us, and each launch has a line of its own."""

import dataclasses
from pathlib import PurePath

import pytest
from analysis.drawn import COLUMN, timeline

from syncscope.analysis.summary import summarize
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace

USER = "train.py"
LIBRARY = "/env/lib/python3.12/site-packages/torchvision/ops/boxes.py"
PARTS = ("driver", "between", "waiting", "loading", "device", "backward", "idle")


def with_lines(trace: Trace, lines: dict[str, Place], **more: dict[str, Place]) -> Trace:
    """The recording whose launch `a` stands at `lines["a"]`, and a call that waits at `lines["wait"]`; `more` by column."""

    def told(event: Event) -> Event:
        if event.kind != Kind.CALL:
            return event
        name = chr(event.correlation) if event.correlation >= 0 else "wait"
        columns = {column: of[name] for column, of in more.items() if name in of}
        return dataclasses.replace(event, place=lines.get(name), **columns)

    return Trace.of(map(told, trace))


def by_line(trace: Trace) -> dict[str, dict[str, float]]:
    """What each line takes of a step, in columns; the sums are checked."""
    report = summarize(trace, prices=False)
    found = report.by_line
    assert sum(one.of_step for one in found.lines) == pytest.approx(found.step), (
        "every moment of the device is a line's"
    )
    assert sum(one.host for one in found.lines) == pytest.approx(found.host), "and every one of the host"
    idle = sum(one.time for one in report.uses.spent if one.use.is_idle)
    assert sum(one.idle for one in found.lines) == pytest.approx(idle), "idle time has one account"
    rows = {}
    for one in found.lines:
        name = f"{PurePath(one.place.path).stem}:{one.place.line}" if one.place else "none"
        values = {part: round(getattr(one, part) / COLUMN, 2) for part in PARTS}
        values |= {"launches": one.launches, "waits": one.waits}
        rows[name] = {part: value for part, value in values.items() if value}
    return rows


def line(number: int, path: str = USER) -> Place:
    return Place(path, number)


def test_every_moment_of_the_host_is_for_the_call_that_ends_it():
    trace = timeline("""
        steps 1==================|
        host  a...b.c........d....
        gpu   .A...B.C........DDDD
    """)
    found = by_line(with_lines(trace, {"a": line(1), "b": line(2), "c": line(2), "d": line(3)}))
    assert found["train:1"] == {"driver": 1.0, "device": 1.0, "idle": 1.0, "launches": 1}
    assert found["train:2"] == {"driver": 2.0, "between": 4.0, "device": 2.0, "idle": 4.0, "launches": 2}
    assert found["train:3"]["between"] == 8.0 + 4.0, "and what follows the last call is for the next, or was its own"
    assert found["train:3"]["device"] == 4.0


def test_a_wait_has_its_time_and_the_idle_time_that_follows():
    trace = timeline("""
        steps 1==================|
        host  a.<item   >......b..
        gpu   .AAAAAAAAAA......BBB
    """)
    found = by_line(with_lines(trace, {"a": line(1), "wait": line(7), "b": line(9)}))
    assert found["train:7"]["waiting"] == pytest.approx(8.0, abs=1.1)
    assert found["train:7"]["idle"] == pytest.approx(6.0, abs=1.1)
    assert found["train:7"]["waits"] == 1
    assert "waiting" not in found["train:9"]


def test_what_has_no_line_is_a_row_of_its_own():
    trace = timeline("""
        steps 1============|
        host  a.b.c.d.......
        gpu   .A.B.C.DDDDDDD
    """)
    placed = with_lines(trace, {"a": line(1), "b": line(2)})
    found = by_line(placed)
    assert found["none"]["device"] == 8.0
    uses = summarize(placed, prices=False).by_line
    assert uses.device_known == pytest.approx(2 / 10)
    assert uses.host_known == pytest.approx(3 / 14)


def test_a_line_of_a_library_stands_apart_for_each_line_of_the_user_that_leads_there():
    trace = timeline("""
        steps 1============|
        host  a.b.c.........
        gpu   .A.B.CCCCCCCCC
    """)
    inner = line(40, LIBRARY)
    callers = {"a": line(14), "b": line(20)}
    trace = with_lines(trace, {"a": inner, "b": inner, "c": line(21)}, caller=callers)
    lines = summarize(trace, prices=False).by_line.lines
    assert {(one.place.line, one.caller and one.caller.line, one.library) for one in lines if one.place} == {
        (40, 14, True),
        (40, 20, True),
        (21, None, False),
    }
    assert {one.users.line for one in lines if one.place} == {14, 20, 21}


def test_the_backward_pass_is_on_the_device_the_line_whose_gradient_it_is():
    trace = timeline("""
        steps 1============|
        host  a.b...c.d.....
        gpu   .A.B...CCCDDDD
    """)
    lines = {"a": line(1), "b": line(2), "c": line(9), "d": line(9)}
    found = by_line(with_lines(trace, lines, forward={"c": line(2), "d": line(1)}))
    assert found["train:1"]["backward"] == 4.0
    assert found["train:2"]["backward"] == 3.0
    assert "device" not in found["train:9"]
    assert found["train:9"]["launches"] == 2, "the host launched it there"


def test_work_that_overlaps_is_counted_once():
    trace = timeline("""
        steps 1============|
        host  ab............
        gpu   .AAAAAAAAAAAA.
        gpu2  ..BBBBBBBBBBBB
    """)
    found = by_line(with_lines(trace, {"a": line(1), "b": line(2)}))
    assert found["train:1"]["device"] == 12.0
    assert found["train:2"]["device"] == 1.0


def test_the_loader_is_apart_from_other_work_before_a_call():
    trace = timeline("""
        steps 1==================|
        host  a................b..
        gpu   AAAAA............BBB
    """)
    loader = Event(
        Kind.ANNOTATION,
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        Lane(1, 1),
        6 * COLUMN,
        10 * COLUMN,
    )
    found = by_line(Trace.of([*with_lines(trace, {"a": line(1), "b": line(2)}), loader]))
    assert found["train:2"]["loading"] == 10.0
    assert found["train:2"]["between"] == 6.0 + 2.0


def test_a_recording_that_knows_only_the_lines_of_reads_has_those():
    trace = timeline("""
        steps 1==================|
        host  a.<item   >......b..
        gpu   .AAAAAAAAAA......BBB
    """)
    wait = next(e for e in trace if e.kind == Kind.OP)
    read = Event(Kind.READ, "item", Lane(1, 1), wait.start, wait.duration, place=line(7))
    found = by_line(Trace.of([*trace, read]))
    assert found["train:7"]["waits"] == 1
    assert found["none"]["device"] > 0


def test_of_a_host_that_runs_ahead_the_steps_are_the_devices_and_the_hosts_are_shorter():
    steps = "".join(f"{n}==|" for n in range(1, 7))
    trace = timeline(f"""
        steps {steps}..............................
        host  a...b...c...d...e...f...
        gpu   .{"".join(letter * 9 for letter in "ABCDEF")}
    """)
    uses = summarize(with_lines(trace, {letter: line(1) for letter in "abcdef"}), prices=False).by_line
    assert uses.step == pytest.approx(9 * COLUMN)
    assert uses.host == pytest.approx(4 * COLUMN)
    assert sum(one.of_step for one in uses.lines) == pytest.approx(uses.step)


def test_without_work_of_a_device_nothing_is_said():
    assert summarize(Trace.of([Event(Kind.OP, "aten::add", Lane(1, 1), 0, 10)]), prices=False).by_line is None
