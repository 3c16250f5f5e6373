from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from drawn import COLUMN, Device, device_early, timeline
from effort import draws
from hypothesis import given, settings
from test_replay import PROGRAMS, graph_of

from syncscope.analysis.price import prices, timed_part, unpriced
from syncscope.analysis.summary import summarize
from syncscope.model.finding import Finding, Hazard
from syncscope.model.source import Place, Span
from syncscope.model.trace import Kind

US = 1_000


# a step: one kernel of 5 ms, then `lines` read one after the other, then 4 ms of host work
def loop(lines, steps=6, kernel=5_000 * US, work=4_000 * US):
    return [[("launch", 0, kernel), *(("read", n, 0) for n in lines), ("work", work)]] * steps


def lines_of(graph):
    found = {}
    for number, read in enumerate(graph.reads):
        found.setdefault(read.place, []).append(number)
    return list(found.values())


def test_one_read_that_drains_the_queue_costs_the_overlap():
    graph = graph_of(Device().run(loop([57]))[0])
    found = prices(graph, lines_of(graph))
    (price,) = found.lines
    assert found.step == pytest.approx(9_000 * US, rel=0.01)  # 5 ms kernel, then 4 ms host
    assert found.saving == pytest.approx(4_000 * US, rel=0.01)  # side by side
    assert price.alone == price.last == price.share == found.saving
    assert price.deferred == pytest.approx(found.saving, rel=0.01)
    assert found.plan == (0,)


def test_two_reads_in_a_row_share_what_neither_gives_alone():
    graph = graph_of(Device().run(loop([57, 58]))[0])
    found = prices(graph, lines_of(graph))
    first, second = found.lines
    assert first.alone < 10 * US
    assert first.last == pytest.approx(4_000 * US, rel=0.01)
    assert first.share == pytest.approx(second.share, rel=0.02)
    assert first.share + second.share == pytest.approx(found.saving)
    assert set(found.plan) == {0, 1}


def test_a_read_of_a_device_bound_loop_that_hides_everything_costs_nothing():
    program = [[("launch", 0, 5_000 * US), ("launch", 0, 100 * US), ("read", 1, 1), ("work", 10 * US)]] * 6
    found = prices(graph := graph_of(Device().run(program)[0]), lines_of(graph))
    assert found.saving < 0.01 * found.step


def test_reads_of_one_step_merged_into_one_keep_only_the_last():
    program = [[("launch", 0, 1_000 * US), ("read", 7, 0), ("work", 1_000 * US)] * 3] * 6
    found = prices(graph := graph_of(Device().run(program)[0]), lines_of(graph))
    (price,) = found.lines
    assert 0 < price.merged < price.alone
    assert price.asynchronous <= price.alone


@settings(max_examples=draws(40))
@given(PROGRAMS, st.integers(0, 3))
def test_shares_add_up_to_the_saving(program, seed):
    graph = graph_of(Device().run(program)[0])
    found = prices(graph, lines_of(graph), seed)
    assert sum(p.share for p in found.lines) == pytest.approx(found.saving, abs=1)
    assert 0.9 * found.saving <= found.plan_saving + 1
    assert all(p.share_error == 0 for p in found.lines)


def test_sampled_shares_say_how_sure_they_are():
    graph = graph_of(Device().run(loop(range(1, 9)))[0])
    found = prices(graph, lines_of(graph))
    assert sum(p.share for p in found.lines) == pytest.approx(found.saving)
    assert max(p.share_error for p in found.lines) > 0


def test_the_first_and_last_of_enough_steps_are_left_out():
    graph = graph_of(Device().run([[("work", 50_000 * US)], *loop([1], 5)])[0])
    assert (timed_part(graph).first, timed_part(graph).last, timed_part(graph).steps) == (0, 4, 4)
    assert prices(graph, lines_of(graph)).step == pytest.approx(9_000 * US, rel=0.01)


def test_steps_that_warm_up_are_left_out():
    slow = [[("work", 90_000 * US)], [("work", 40_000 * US)], [("work", 20_000 * US)]]
    trace, _ = Device().run([*slow, *loop([1], 9)])
    graph = graph_of(trace)
    assert (timed_part(graph).first, timed_part(graph).last, timed_part(graph).steps) == (2, 10, 8)
    report = summarize(trace)
    assert report.steady == 8
    assert report.step == pytest.approx(9_000 * US, rel=0.01)
    late = graph_of(Device().run([*loop([1], 6), *slow, *loop([1], 3)])[0])  # a slow step in between is one of the loop
    assert timed_part(late).steps == 10


def test_a_read_after_which_nothing_is_launched_has_no_price():
    graph = graph_of(Device().run(loop([1], 1))[0])
    assert unpriced(graph) == {0}
    assert prices(graph, lines_of(graph)).saving == 0


def test_the_report_meets_the_findings_and_says_what_to_do():
    trace, _ = Device().run(loop([57]))

    def finding(line, rule="host-read", path="src/train.py"):
        return Finding(rule, Place(path, line), 1, line, 9, Span(0, 1), "a read", 3)

    hazards = [Hazard("host-read", "", "", seen_as=("item",))]
    report = summarize(trace, [finding(57), finding(99), finding(57, path="other/train2.py")], hazards)
    (line,) = report.lines
    assert line.rule == "host-read"
    assert line.finding is not None
    assert line.finding.place.line == 57
    assert [f.place.line for f in report.unseen] == [99, 57]
    assert line.count == 1
    assert "Fixing one line saves 4.0 ms of 9.0 ms per step" in report.verdict
    assert report.verdict.count("4.0 ms") == 1  # what all waits cost is the same, and not told again
    assert report.plan == (0,)


def test_a_line_that_reads_only_at_the_start_is_no_line_of_the_loop():
    program = loop([57])
    program[0] = [("read", 3, 0), *program[0]]
    place = Place("train.py", 3)
    found = Finding("host-read", place, 1, 3, 9, Span(0, 1), "a read", 3)
    report = summarize(Device().run(program)[0], [found])
    assert [line.place.line for line in report.lines] == [57]
    assert "1 sync in steps that are not counted left out" in report.notes
    assert report.unseen == ()


def test_reads_after_the_last_step_are_named():
    trace = Device().run(loop([57]))[0]
    steps = trace.rows(Kind.STEP)
    report = summarize(trace.take(np.delete(np.arange(len(trace)), steps[-2:])))  # as after a loop
    numbers = [read.step for read in report.reads]
    outside = numbers.count(-1)
    assert outside == 2
    assert report.lines[0].count == 1  # a step
    assert f"{outside} syncs outside of steps: `item` at train.py:57 ({outside} times)" in report.notes


def test_nothing_worth_fixing_is_said():
    trace, _ = Device().run([[("launch", 0, 10 * US), ("read", 1, 0), ("work", 9_000 * US)]] * 6)
    report = summarize(trace)
    assert "No wait is worth fixing" in report.verdict
    assert report.plan == ()
    calm, _ = Device().run([[("launch", 0, 10 * US), ("work", 9_000 * US)]] * 6)
    assert "never waits" in summarize(calm).verdict


def test_no_price_where_the_replay_cannot_be_trusted():
    trace = timeline("""
        host   ...a.<item  >..b.<item  >..c..
        gpu    ....AAAAAAAA....BBBBBBBB....CC
    """)
    early = device_early(trace, 8 * COLUMN)
    report = summarize(early)
    assert report.fidelity > 0.05
    assert report.saving is None
    assert all(line.price is None for line in report.lines)
    assert "No savings" in report.verdict


def test_without_device_work_nothing_is_priced():
    trace = timeline("""
        host   a.<item  >...b
    """)
    report = summarize(trace)
    assert report.fidelity is None
    assert report.device_busy is None
    assert "No savings" in report.verdict


def test_a_step_that_compiled_keeps_its_waits() -> None:
    # its work is still queued when the next begins: without the wait the counted steps would seem to catch up on it
    first = [("launch", 0, 60_000 * US), ("read", 1, 0)]
    trace, _ = Device().run([first, *loop([1])])
    graph = graph_of(trace)
    last = unpriced(graph)
    steps = (replace(graph.steps[0], settled=False), *graph.steps[1:])
    assert unpriced(replace(graph, steps=steps)) - last == {n for n, read in enumerate(graph.reads) if read.step == 0}
    assert prices(replace(graph, steps=steps), lines_of(graph)).saving == pytest.approx(4_000 * US, rel=0.02)
