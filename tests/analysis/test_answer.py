"""One of four words: by what is likely, by what it lies between, by what can be had at most."""

import itertools
from dataclasses import replace

import pytest
from drawn import Device
from simulated import Machine
from test_brought_together import HAZARDS, found, said

from syncscope.analysis.answer import answer, decide, instead
from syncscope.analysis.summary import summarize
from syncscope.exporters import markdown, terminal
from syncscope.model.answer import Answer, Decision
from syncscope.model.detail import Detail
from syncscope.model.finding import Adds, Stays
from syncscope.model.source import Place
from syncscope.model.trace import WAY, Event, Flag, Kind, Lane, Trace

NOTHING = Adds.NOTHING
FIX, TRY, LEAVE, UNKNOWN = Decision.FIX, Decision.TRY, Decision.LEAVE, Decision.UNKNOWN
MS = 1_000_000


@pytest.mark.parametrize(
    ("share", "low", "high", "bound", "adds", "said"),
    [
        (0.30, 0.24, 0.36, 0.6, NOTHING, FIX),
        (0.30, 0.24, 0.36, 0.6, Adds.BRANCHES, TRY),  # the rewrite may undo it
        (0.30, 0.24, 0.36, 0.6, Adds.ROWS, FIX),  # which are counted in, and that much is left
        (0.30, 0.09, 0.36, 0.6, Adds.ROWS, TRY),
        (0.19, 0.12, 0.36, 0.6, Adds.ROWS, TRY),
        (0.30, 0.005, 0.36, 0.6, NOTHING, TRY),  # it may be nothing
        (0.03, 0.011, 0.05, 0.6, NOTHING, FIX),
        (0.01, -0.02, 0.12, 0.6, NOTHING, TRY),  # it may be much
        (0.01, -0.02, 0.04, 0.6, NOTHING, LEAVE),
        (0.02, 0.0, 0.04, 0.6, NOTHING, TRY),  # between
        (0.02, 0.0, 0.025, 0.025, NOTHING, LEAVE),  # no fix gives more
    ],
)
def test_what_is_decided_of_a_share_its_interval_and_its_bound(share, low, high, bound, adds, said):
    assert decide(share, low, high, bound, adds) is said


def test_no_interval_passes_the_bound_and_each_holds_what_is_likely():
    found = answer(0.2, (0.25, 0.5), 0.3)
    assert (found.share, found.low, found.high, found.bound) == (0.2, 0.2, 0.3, 0.3)
    past = answer(0.4, (0.1, 0.5), 0.3)
    assert (past.share, past.high) == (0.3, 0.3)


def test_a_figure_in_words():
    known = Answer(FIX, 0.29, 0.24, 0.36, 0.6, 642, 214)
    assert known.figure == "29 % (24 to 36 %; 4 in 5 of 214 loops that were fixed and timed came out in this range)"
    assert Answer(TRY, 0.024, -0.004, 0.0996).figure == "2.4 % (0.4 % longer to 10 % shorter)"
    assert Answer(TRY, 0.024, -0.0004, 0.0996).figure == "2.4 % (0 to 10 %)"
    assert Answer(TRY, -0.02, -0.03, -0.01).figure == "-2.0 % (1.0 to 3.0 % longer)"
    assert Answer(UNKNOWN).figure == ""


def step(*reads: int, work: float = 4.0) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = [("launch", 0, 5 * MS)]
    return [*found, *(("read", line, 0) for line in reads), ("work", int(work * MS))]


def test_a_report_decides_for_all_and_for_each_line():
    report = summarize(Device().run([step(57)] * 8)[0])
    assert report.answer.decision is FIX
    assert report.lines[0].answer.decision is FIX
    assert report.answer.share == pytest.approx(4 / 9, rel=0.01)
    assert "Decision: fix. Fixing one line saves 4.0 ms of 9.0 ms per step" in report.verdict


def test_lines_that_are_left_one_by_one_are_tried_all_together_where_their_sum_is_worth_it():
    """Six lines that a step gains 1 % by each."""
    little = int(0.4 * MS)
    each = [("launch", 0, little), ("work", little), ("launch", 0, 6 * MS), ("work", 5 * MS)]
    program = [each[0], ("read", 0, 0), *each[1:]]
    report = summarize(
        Device().run([[("read", 50 + n, 0) if op[0] == "read" else op for n in range(6) for op in program]] * 8)[0]
    )
    assert report.answer.decision is TRY
    assert {line.answer.decision for line in report.lines} == {LEAVE}
    assert report.verdict.startswith("Decision: try, all together, for no line is worth it alone.")
    assert "all together, for no line is worth it alone; 4 in 5 of" in " ".join(terminal.export(report).split())


@pytest.mark.parametrize(("late", "word"), [(0, "do first"), (800_000, "try")])
def test_what_to_do_first_rests_on_a_replay_that_holds(late, word):
    """Kernels that begin late for no recorded reason, so that a replay is 11 % off: what a row saves is the
    replay's, while the answer for all waits was right in recordings of that kind, too."""
    trace = Device().run([[("launch", 0, 3 * MS), ("read", 57, 0), ("work", 4 * MS), ("launch", 0, MS)]] * 12)[0]
    count = itertools.count(1)
    of_kernels = {n: next(count) for n, event in enumerate(trace) if event.kind == Kind.KERNEL}
    moved = {n: late * (number % 3) for n, number in of_kernels.items() if number % 2 == 0}
    report = summarize(Trace.of(replace(e, start=e.start + moved.get(n, 0)) for n, e in enumerate(trace)))
    assert report.answer.decision is FIX
    assert report.answer.share > 0.4
    said = " ".join(terminal.export(report).split())
    assert f"{word} the waits of `item` at train.py:57" in said
    head = said.partition(" recorded ")[0]
    assert head.count(" shorter (") == 1, "one figure is said once"
    assert ("a replay gets 11.1 % of a step wrong or cannot explain it, so the range is wide" in head) is (late > 0)
    assert ("too far to say what a line saves" in said) is (late > 0)
    assert markdown.export(report).count(f"{word.capitalize()}: the waits of `item`") == 1


def test_where_no_replay_holds_the_waits_whose_saving_is_said_come_before_what_nobody_can_say():
    """Launches that take most of a step, and kernels late for no recorded reason."""
    device = Device(launch=50_000)
    trace, _ = device.run([[*[("launch", 0, MS // 100)] * 60, ("launch", 0, MS), ("read", 57, 0)]] * 12)
    count = itertools.count(1)
    of_kernels = {n: next(count) for n, event in enumerate(trace) if event.kind == Kind.KERNEL}
    late = {n: 400_000 for n, number in of_kernels.items() if number % 61 == 30}
    report = summarize(Trace.of(replace(e, start=e.start + late.get(n, 0)) for n, e in enumerate(trace)))
    first, second, *_ = report.what_if
    assert not report.replay_holds
    assert (first.name, second.name) == ("nothing waits", "launches cost nothing")
    assert second.saving > first.saving


def test_what_is_left_is_said_with_what_holds_the_loop_up():
    report = summarize(Device().run([[("launch", 0, 10_000), ("read", 1, 0), ("work", 9 * MS)]] * 8)[0])
    assert report.answer.decision is LEAVE
    assert report.plan == ()
    assert "No wait is worth fixing" in report.verdict
    assert report.verdict.endswith(report.uses.words)


def test_without_work_of_a_device_nobody_knows():
    report = summarize(Device().run([[("work", MS)]] * 8)[0])
    assert report.answer.decision is UNKNOWN
    assert report.answer.share is None
    assert "no work of a device was recorded" in report.answer.why
    assert "syncscope run" in report.answer.why


def test_where_nobody_waits_it_is_left():
    report = summarize(Device().run([[("launch", 0, 5 * MS)]] * 8)[0])
    assert (report.answer.decision, report.answer.share) == (LEAVE, 0.0)


def test_a_device_that_is_nearly_always_busy_is_left_whatever_else_is_unknown():
    report = summarize(Device().run([step(57, work=0.01)] * 8)[0])
    assert report.answer.decision is LEAVE
    assert report.answer.why.startswith("no fix can save more than")


def test_a_line_without_a_rewrite_is_priced_by_its_waits_and_says_so():
    report = summarize(Device().run([step(57)] * 8)[0])
    assert report.lines[0].answer.why.endswith("no rewrite of it is known, so the figure is of its waits alone")


def adding(line, start=0, adds=Adds.BRANCHES):
    """A finding whose rewrite has the device do more: both branches run, if nothing else is said."""
    plain = found(line, start, Stays.NONE)
    return replace(plain, fix=replace(plain.fix, adds=adds))


def one_after_the_other(*work: float) -> list[tuple[object, ...]]:
    """5 ms of the device, a read, and so many ms of the host, for each."""
    parts = [[("launch", 0, 5 * MS), ("read", 57 + n, 0), ("work", int(ms * MS))] for n, ms in enumerate(work)]
    return [op for part in parts for op in part]


def test_all_is_tried_where_most_of_it_needs_a_rewrite_that_adds_work():
    """And what adds none is told by what it saves while the other waits as ever."""
    _, report = said([one_after_the_other(4, 4)] * 12, adding(57), found(58, 40, Stays.NONE))
    assert report.answer.decision is TRY
    assert "gives the device more to do" in report.answer.why
    shown = " ".join(terminal.export(report).split())
    assert "gives the device more to do" in shown.partition("recorded")[0], "its interval alone would be that of a fix"
    assert {line.place.line: line.answer.decision for line in report.lines} == {57: TRY, 58: FIX}
    _, report = said([one_after_the_other(0.2, 4)] * 12, adding(57), found(58, 40, Stays.NONE))
    assert report.answer.decision is FIX
    assert report.answer.doubt == ""


@pytest.mark.parametrize(("work", "others", "decision"), [(4, 0.0, FIX), (0.8, 0.0, TRY), (4, 0.3, TRY)])
def test_rows_are_counted_in_so_that_much_is_worth_a_rewrite_that_computes_more_of_them(work, others, decision):
    """44 % of a step, or 14 %. Where other programs have the processors that are the device, nobody knows what more takes."""
    trace = Device().run([one_after_the_other(work, work)] * 12)[0]
    meta = trace.meta | {"others": others, "devices": [{"name": "pocl", "processor": True}]} if others else trace.meta
    path = summarize(trace).lines[0].place.path
    findings = [adding(57, adds=Adds.ROWS), adding(58, 40, adds=Adds.ROWS)]
    findings = [replace(one, place=Place(path, one.place.line)) for one in findings]
    report = summarize(replace(trace, meta=meta), findings, HAZARDS)
    assert report.answer.decision is decision


@pytest.mark.parametrize(("share", "low", "decision"), [(0.3, 0.2, FIX), (0.3, 0.09, TRY), (0.19, 0.15, TRY)])
def test_launches_that_may_take_the_place_of_what_is_read_keep_what_is_little_from_being_fixed(share, low, decision):
    found = Answer(FIX, share, low, 0.4, 0.5, offered=share)
    assert instead(found, share - 0.41, 0.0).decision is decision
    assert instead(found, share - 0.39, 0.0).decision is FIX


def test_a_wait_that_only_moves_to_one_whose_rewrite_adds_work_is_no_fix():
    program = [[("launch", 0, 5 * MS), ("read", 57, 0), ("read", 58, 0), ("work", 4 * MS)]] * 12
    _, report = said(program, adding(58), found(57, 40, Stays.NONE))
    decided = {line.place.line: line.answer for line in report.lines}
    assert decided[57].decision is not FIX
    assert decided[57].share < 0.01


@pytest.mark.parametrize(("works", "decision"), [(3, FIX), (0, TRY)])
def test_a_batch_that_is_uploaded_must_be_pinned_which_is_a_copy_too(works, decision):
    """Where the device works before, the host waits for that as well; else it is one copy for another."""
    machine = Machine()
    machine.run([[("launch", 0, works * MS), ("upload", 0, 6_000_000), ("launch", 0, MS), ("work", 4 * MS)]] * 10)
    report = summarize(machine.trace())
    assert report.answer.share > 0.15
    assert report.answer.decision is decision


def asking(op):
    """Steps in which line 57 launches a millisecond of work to ask for a number, and line 50 what comes before."""
    device = Device()
    device.run([[("launch", 0, 5 * MS), ("launch", 0, MS), ("read", 57, 0), ("work", 2 * MS)]] * 12)
    launches = [event for event in device.events if event.name == "cudaLaunchKernel"]
    lines = {id(event): 57 if n % 2 else 50 for n, event in enumerate(launches)}
    return Trace.of(
        replace(event, place=Place("train.py", lines[id(event)]))
        if id(event) in lines
        else replace(event, name=op)
        if event.name == "item"
        else event
        for event in device.events
    )


@pytest.mark.parametrize(("op", "saved"), [("item", 2), ("bool", 3)])
def test_what_a_line_launched_for_a_condition_goes_with_it(op, saved):
    """It is asked less often, or not at all; a number that is noted is still computed."""
    report = summarize(asking(op))
    assert report.answer.share == pytest.approx(saved / 8, rel=0.03)


def test_of_a_line_that_calls_a_function_of_torch_only_what_that_launches_to_ask_goes_with_the_question():
    """`Categorical(logits=net(x))`: five milliseconds of a net by one call in torch's Python, one to check them by another."""
    net, check = 3, 7
    device = Device()
    device.run([[("launch", 0, 5 * MS), ("launch", 0, MS), ("read", 57, 0), ("work", 2 * MS)]] * 12)
    ways = iter([net, check] * 12)
    events = []
    for event in device.events:
        if event.name == "cudaLaunchKernel":
            event = replace(event, place=Place("train.py", 57), flags=next(ways) << WAY)
        elif event.kind == Kind.READ:
            asks = Detail(library="torch/distributions/distribution.py:76").text()
            event = replace(event, name="bool", detail=asks)
        elif event.name == "clEnqueueReadBuffer":
            event = replace(event, flags=event.flags | check << WAY)
        events.append(event)
    report = summarize(Trace.of(events))
    assert report.answer.share == pytest.approx((2 + 1) / 8, rel=0.03)
    assert [line.op for line in report.lines] == ["distribution_validate"], "no `bool` is written there"


@pytest.mark.parametrize(
    ("read", "asks", "op", "saved"),
    [
        ("bool", "torch/nn/utils/clip_grad.py:105", "clip_grad_norm", 2),
        ("item", "torch/amp/grad_scaler.py:345", "grad_scaler", 2),
        ("bool", "torch/nn/modules/transformer.py:1180", "transformer_mask", 3),
        ("bool", "torch/optim/lbfgs.py:340", "bool", 3),
    ],
)
def test_what_torch_asks_is_called_by_the_function_that_asks_and_what_it_needs_itself_stays(read, asks, op, saved):
    """Whether a norm is finite is asked of the one that clips, which is computed all the same. Line 57 launches 1 ms."""
    events = (
        replace(event, detail=Detail(library=asks).text()) if event.kind == Kind.READ else event
        for event in asking(read)
    )
    report = summarize(Trace.of(events))
    assert [line.op for line in report.lines] == [op]
    assert report.answer.share == pytest.approx(saved / 8, rel=0.03)


def test_a_launch_that_goes_with_a_question_gives_back_its_own_time_and_not_that_of_the_wait_until_which_it_was_kept_back():
    """OpenCL's driver may keep kernels back until the host waits: then six of them are submitted by one call, a long one."""
    host, queue, us, events, number = Lane(1, 1), Lane(0, 7, 0), 1_000, [], 0
    place = Place("train.py", 57)
    for step in range(8):
        now = step * 4_000 * us
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", host, now, 4_000 * us))
        read, begun = now + 1_600 * us, now + 1_630 * us
        for kernel in range(6):
            number += 1
            at = now + 1_000 * us + 100 * us * kernel
            events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", host, at, 5 * us, correlation=number, place=place))
            events.append(Event(Kind.KERNEL, "k", queue, begun, 200 * us, correlation=number))
            begun += 205 * us
        number += 1
        events.append(Event(Kind.READ, "bool", host, read, 1_400 * us, place=place))
        waits = Event(Kind.CALL, "clEnqueueReadBuffer", host, read + 10 * us, 1_380 * us, correlation=number)
        events.append(replace(waits, flags=Flag.BLOCKING))
        events.append(Event(Kind.COPY, "Memcpy DtoH (Device -> Pageable)", queue, begun, us, correlation=number))
    report = summarize(Trace.of(events))
    assert report.saving == pytest.approx(2 * MS, rel=0.1)  # the read, and what was launched for it
    assert report.bound.host == pytest.approx(2 * MS, rel=0.1)


def test_what_the_host_works_on_a_copied_tensor_may_go_along():
    device = Device()
    device.run([[("launch", 0, 5 * MS), ("read", 57, 0), ("work", 4 * MS)]] * 12)
    plain, copied = (
        summarize(Trace.of(replace(event, name=op) if event.name == "item" else event for event in device.events))
        for op in ("item", "cpu")
    )
    assert copied.answer.share == pytest.approx(plain.answer.share)
    assert plain.answer.most == pytest.approx(plain.answer.share)
    assert copied.answer.most >= copied.answer.share + 0.9 * 4 / 9
    assert copied.answer.bound > plain.answer.bound


@pytest.mark.parametrize("clears", [False, True])
def test_what_a_line_launched_for_its_read_goes_with_a_rewrite_that_asks_no_longer(clears):
    """Line 57 launches a millisecond of work to ask for it, and line 50 what comes before."""
    trace = asking("item")
    (line,) = summarize(trace, [], HAZARDS).lines
    asked = replace(found(57), place=line.place)
    asked = replace(asked, fix=replace(asked.fix, stays=Stays.NONE, clears=clears))
    report = summarize(trace, [asked], HAZARDS)
    assert report.saving == pytest.approx((3 if clears else 2) * MS, rel=0.03)
    assert report.bound.saving >= report.saving - 1_000


@pytest.mark.parametrize(("doubt", "part"), [(0.4, "40%"), (1.1, "all")])
def test_no_more_than_all_of_a_step_is_open(doubt, part):
    found = answer(0.3, (0.2, 0.4), 0.7, doubt=doubt)
    assert found.why == f"this recording leaves {part} of a step open: measuring it settles it"
