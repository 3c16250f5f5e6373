"""What a rewrite saves that brings several reads together: the one that stays still waits."""

from dataclasses import replace

import pytest
from drawn import Device
from rich.console import Console
from test_price import US, loop

from syncscope.analysis.brought_together import staying
from syncscope.analysis.summary import summarize
from syncscope.exporters import terminal
from syncscope.model.answer import Decision
from syncscope.model.finding import Edit, Finding, Fix, Hazard, Safety, Stays
from syncscope.model.heat import Reason
from syncscope.model.source import Place, Span

HAZARDS = [Hazard("host-read", "", "", ("item",))]


def found(line, start=0, stays=Stays.LAST):
    """A finding of the host's read at that line, whose rewrite reads it with all others of the same edit."""
    fix = Fix("read them at once", (Edit(Span(start, start + 1), "x"),), Safety.SAFE, stays=stays)
    return Finding("host-read", Place("train.py", line), 0, line, 9, Span(start, start + 1), "", 3, fix=fix)


def said(program, *findings):
    trace = Device().run(program)[0]
    plain = summarize(trace, [], HAZARDS)
    paths = {line.place.path for line in plain.lines}
    (path,) = paths
    moved = [
        Finding(
            f.rule, Place(path, f.place.line), f.column, f.end_line, f.end_column, f.span, "", 3, fix=f.fix, heat=f.heat
        )
        for f in findings
    ]
    return plain, summarize(trace, moved, HAZARDS)


def test_two_reads_in_a_row_that_are_made_one_save_nothing():
    """The first waits for the device, the second only for its copy: together they wait as long."""
    plain, report = said(loop([57, 58], steps=20), found(57), found(58))
    assert plain.answer.share == pytest.approx(4 / 9, abs=0.02)  # were both not made
    assert plain.answer.decision is Decision.FIX
    assert report.answer.share == pytest.approx(plain.answer.share)
    assert report.answer.offered < 0.01
    assert report.answer.decision is Decision.TRY
    assert "a step later" in report.answer.why
    assert report.plan_saving < 0.01 * report.saving_step
    assert [line.price.share for line in report.lines] == pytest.approx([line.price.share for line in plain.lines])
    assert all("one stays" in line.answer.why for line in report.lines if line.answer)


def test_reads_of_two_rewrites_are_not_made_one():
    _, report = said(loop([57, 58], steps=20), found(57, 0, Stays.NONE), found(58, 40, Stays.NONE))
    assert report.answer.share == pytest.approx(4 / 9, abs=0.02)


def test_a_list_that_is_read_at_once_waits_once_a_step():
    """Eight times a kernel, a read and the host's work: but the last, they go."""
    body = [("launch", 0, 500 * US), ("read", 57, 0), ("work", 400 * US)]
    program = [body * 8] * 12
    plain, report = said(program, found(57))
    assert 0 < report.answer.offered < report.answer.share
    assert report.answer.offered == pytest.approx(7 / 8 * plain.answer.share, rel=0.15)
    assert "Fixing one line, of whose reads one stays, " in report.verdict
    assert "stays" not in plain.verdict


@pytest.mark.parametrize(
    ("lines", "stay"),
    [([57], 0), ([57, 57, 57], 1), ([57, 58], 1), ([57, 58, 57, 58], 2), ([57, 58, 59, 57], 2)],
)
@pytest.mark.parametrize("stays", [Stays.LAST, Stays.FIRST])
def test_one_of_each_run_stays(lines, stay, stays):
    _, report = said(loop(lines, steps=5), *(found(line, stays=stays) for line in sorted(set(lines))))
    members = {}
    for number, read in enumerate(report.reads):
        members.setdefault(read.place, []).append(number)
    of = [(members[line.place], line) for line in report.lines]
    kept = staying(report.reads, of)
    by_step = [sum(report.reads[n].step == step.index for n in kept) for step in report.steps]
    assert by_step == [stay or int(stays is Stays.FIRST)] * len(report.steps)
    if stay == 1:
        which = lines[-1] if stays is Stays.LAST else lines[0]
        assert {report.reads[n].place.line for n in kept} == {which}


def row_of_waits(report):
    return next(one for one in report.what_if if one.name == "nothing waits")


def test_a_rewrite_is_named_beside_the_price_of_all_waits_only_where_it_takes_most_of_them():
    """A read that has most of it, and one that has nothing: without a rewrite of the first its waits are named."""
    program = [
        [("launch", 0, 500 * US), ("read", 57, 0), ("work", 400 * US), ("launch", 0, 20 * US), ("read", 58, 0)]
    ] * 12
    _, of_little = said(program, found(58, 0, Stays.NONE))
    assert row_of_waits(of_little).told.startswith("first the waits of `item` at")
    assert "train.py:57" in row_of_waits(of_little).advice
    assert row_of_waits(of_little).rule == ""
    _, of_much = said(program, found(57, 0, Stays.NONE))
    assert row_of_waits(of_much).advice.startswith("read them at once (at ")
    assert row_of_waits(of_much).rule == "host-read"


def test_of_reads_that_are_made_one_the_rewrite_is_named_and_that_one_of_them_stays():
    _, report = said(loop([57, 58], steps=20), found(57), found(58))
    advice = row_of_waits(report).advice
    assert ": read them at once, which `syncscope verify --budget " in advice
    assert advice.endswith(" tries; one wait of them is left")


def test_a_wait_that_only_moves_to_the_next_line_is_named_with_that_line():
    """The linter knows that line 58 waits right after, and stays: without line 57 alone the host waits there."""
    loop_of = loop([57, 58], steps=20)
    alone = replace(found(57, 0, Stays.NONE), heat=Reason.BEFORE("58"))
    _, report = said(loop_of, alone)
    row = row_of_waits(report)
    assert row.told == (
        "first the waits of `item` at train.py:57 and `item` at train.py:58, together, as the first alone only moves its "
        "wait to the next: train.py:57: read them at once; `syncscope explain host-read` shows what people write"
    )
    assert row.command == "", "a trial of one of them tells nothing"
    with (console := Console(width=200)).capture() as shown:
        console.print(terminal.render(report, 200))
    assert "rewrite: read them at once (safe), but line 58 waits right after, and stays" in shown.get()
    _, elsewhere = said(loop_of, replace(alone, heat=Reason.BEFORE("59")))
    assert "together" not in row_of_waits(elsewhere).advice, "nothing waited at line 59"


def test_the_lines_of_rewrites_that_are_named_are_those_of_the_command():
    """Of suggestions, too: nobody tries them who is not asked for their lines."""
    program = [[("launch", 0, 500 * US), ("read", 57, 0), ("work", 400 * US)]] * 12
    _, report = said(program, found(57, 0, Stays.NONE))
    row = row_of_waits(report)
    assert row.advice.startswith("read them at once (at ")
    assert row.command == f"syncscope verify --budget 2m --line {report.lines[0].place} YOUR_PROGRAM.py"
