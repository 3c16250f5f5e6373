import dataclasses
import io
import math

import numpy as np
import pytest
from analysis.drawn import Device
from rich.cells import cell_len
from rich.console import Console

from syncscope.analysis.summary import summarize
from syncscope.exporters import _figures as figures
from syncscope.exporters import terminal
from syncscope.model.answer import Answer, Decision
from syncscope.model.report import Line, Report
from syncscope.model.source import Place
from syncscope.model.trace import DEVICE
from syncscope.model.uses import Nameless, Spent, StepUses, Use

MS = 1_000_000


def printed(report: Report, width: int, **options) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, **options)
    console.print(terminal.render(report, width))
    return console.file.getvalue()


def test_the_whole_report_as_it_is_printed(report, golden):
    golden("terminal.txt", terminal.export(report))


def test_where_a_step_goes_adds_up_to_all_of_it(report):
    """What is too small for a word is told together, and work from before the recording is not unexplained."""
    ns = {"compute": 55, "copy": 0.4, "collective": 0.3, "wait": 0.2, "queue": 0.1, "unexplained": 44}
    spent = [Spent(use, ns.get(use.value, 0.0), ((Nameless.EARLIER, 42.0),) * (use is Use.UNEXPLAINED)) for use in Use]
    said = printed(dataclasses.replace(report, uses=StepUses(100.0, tuple(spent), (), "")), 200)
    told = "computing 55.0 %, idle unexplained 2.00 %, work from before the recording 42.0 %, all else 1.00 %"
    assert f"goes to  {told}" in said


def test_a_line_of_which_every_figure_is_0_is_told_among_the_others(report):
    nothing = dataclasses.replace(report.lines[0], op="cudaStreamSynchronize", blocked=9, idle_after=0, price=None)
    few = dataclasses.replace(report, lines=(report.lines[0], nothing))
    assert "cudaStreamSync" not in printed(few, 100)
    assert "and 1 more, which is below 0.5% of a step" in printed(few, 100)
    assert "cudaStreamSync" in printed(dataclasses.replace(report, lines=(nothing,), plan=()), 100), "the only one"


@pytest.mark.parametrize(
    ("share", "low", "high", "said"),
    [(0.0044, -0.03, 0.0049, "-3 to 1 %"), (0.0525, 0.0262, 0.0985, "3 to 10 %"), (0.027, 0.03, 0.09, "3 to 9 %")],
)
def test_what_is_likely_lies_within_what_it_is_said_to_lie_between(share, low, high, said):
    assert figures.interval(Answer(Decision.TRY, share, low, high)) == said


@pytest.mark.parametrize(("names", "said"), [(["AMD MI300X"] * 2, "AMD MI300X · "), (["AMD", "other"], "device 9 · ")])
def test_a_device_whose_number_is_not_described_is_one_of_those_that_are_alike(names, said):
    """ROCm counts processors, too: a recording of the only GPU was said to be of `device 9`."""
    trace = Device().run([[("launch", 0, MS), ("read", 57, 0)]] * 3)[0]
    lanes = tuple(dataclasses.replace(lane, device=9) if lane.device >= 0 else lane for lane in trace.lanes)
    known = [{"id": n, "name": name} for n, name in enumerate(names)]
    assert terminal.recorded(dataclasses.replace(trace, lanes=lanes, meta={"devices": known})).startswith(said)


def test_the_share_of_a_line_lies_within_what_stands_beside_it(report):
    """A rewrite that saves little of what its waits cost: `0 to 0 %` stood beside a share of 5.93 %."""
    first = report.lines[0]
    share = first.price.share / report.saving_step
    little = dataclasses.replace(first, answer=Answer(Decision.LEAVE, 0.0003, -0.0002, 0.0013))
    said = f"{100 * share:.1f} %     0 to {math.ceil(100 * share)} %"
    told = printed(dataclasses.replace(report, lines=(little, *report.lines[1:])), 140)
    assert " ".join(said.split()) in " ".join(told.split())


def test_a_planned_line_that_is_left_by_itself_says_when_it_is_to_be_fixed(report):
    """The table numbered it among what to fix, and said `leave`."""
    first = report.lines[0]
    left = dataclasses.replace(first, op="item", answer=Answer(Decision.LEAVE, 0.01, 0.0, 0.02))
    fixed = dataclasses.replace(first, answer=Answer(Decision.FIX, 0.1, 0.05, 0.15))
    assert "leave by itself: fix it once those above are gone" in printed(
        dataclasses.replace(report, lines=(fixed, left), plan=(0, 1)), 120
    )
    assert "by itself" not in printed(dataclasses.replace(report, lines=(fixed, left), plan=(0,)), 120)


@pytest.mark.parametrize("width", [40, 60, 80, 91, 92, 100, 140])
def test_no_line_is_wider_than_the_terminal(report, width):
    lines = printed(report, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert any("1.10" in line and "12.2 %" in line for line in lines), "the price of the first line is always shown"


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize(
    "place", [None, Place("train.py", 57), Place("a/long/way/down/to/the/file/of/a/network.py", 1057)]
)
def test_the_name_of_a_wait_that_is_long_cuts_no_figure_off(report, width, place):
    def figures_of(op):
        first = dataclasses.replace(report.lines[0], op=op, place=place)
        lines = printed(dataclasses.replace(report, lines=(first, *report.lines[1:])), width).splitlines()
        (row,) = (line for line in lines if op[:6] in line and "12.2 %" in line)
        return row[row.index("12.2 %") :].strip()

    assert figures_of("cudaDeviceSynchronizeOfSome") == figures_of("item")


def test_colour_is_for_terminals_and_goes_with_no_color(report):
    assert "\x1b[" not in printed(report, 100)
    assert "\x1b[1;31m" in printed(report, 100, force_terminal=True, color_system="standard")
    assert "\x1b[1;31m" not in printed(report, 100, force_terminal=True, color_system="standard", no_color=True)


def test_blocked_time_is_never_called_a_cost(report):
    for line in terminal.export(report).splitlines():
        if "blocked" in line and "cost" in line:
            assert "neither what it costs" in line


def test_without_prices_there_are_no_columns_for_them(report):
    lines = tuple(dataclasses.replace(line, price=None) for line in report.lines)
    text = terminal.export(dataclasses.replace(report, lines=lines, saving=None, verdict="", fidelity=None))
    assert "idle after" in text
    for word in ("alone", "share", "saved", "Shapley", "fidelity"):
        assert word not in text


def test_a_replay_that_is_far_off_is_said(report):
    assert "too far to say what a line saves" in terminal.export(dataclasses.replace(report, fidelity=0.08))


def test_nothing_that_waits_is_said(report):
    assert "The host waited for the device nowhere" in terminal.export(dataclasses.replace(report, lines=()))


def test_a_recording_without_a_device_is_not_called_well(report):
    text = terminal.export(summarize(report.trace.take(~np.isin(report.trace.kind, DEVICE))))
    said = " ".join(text.split())
    assert "answer unknown no work of a device was recorded" in said
    assert "not enough to judge syncs or savings by. In it:" in said
    assert said.count("no work of a device was recorded") == 1, "the reason is said once"
    assert "nowhere" not in text


def test_many_lines_are_cut_and_counted(report):
    lines = tuple(Line("item", Place("a.py", n), 1, 1.0, 0.0) for n in range(1, 42))
    text = terminal.export(dataclasses.replace(report, lines=lines))
    assert "a.py:30" in text
    assert "a.py:31" not in text
    assert "and 11 more" in text


def test_text_that_looks_like_markup_is_printed_as_it_is(report):
    line = Line("item", Place("[bold]a.py", 1), 1, 1.0, 0.0, module="[red]")
    shown = terminal.export(dataclasses.replace(report, lines=(line,), name="[i]x", notes=("[dim]y",)))
    for text in ("[bold]a.py:1", "[i]x", "[dim]y"):
        assert text in shown


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (873, "873 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 us"),
        (4210, "4.21 us"),
        (31.5e6, "31.5 ms"),
        (12e9, "12.0 s"),
    ],
)
def test_times_have_three_figures(ns, text):
    assert figures.time(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0.6667, "0.667"), (75, "75"), (999.4, "999"), (999.6, "1000"), (249_900, "249900")]
)
def test_counts_have_no_power_of_ten(count, text):
    assert figures.count(count) == text


def test_columns_of_many_launches_stay_apart(report):
    lines = tuple(
        dataclasses.replace(one, launches=249_917.0, driver=0.0, between=32_427e6, waiting=0.0, loading=0.0)
        for one in report.by_line.lines
    )
    text = terminal.export(dataclasses.replace(report, by_line=dataclasses.replace(report.by_line, lines=lines)))
    assert " 32427   249917 " in text


@pytest.mark.parametrize("width", [48, 60, 80])
def test_a_narrow_terminal_loses_no_word_of_the_summary(report, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(terminal.render(report, width))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    head = " ".join(line[terminal.LABEL :].strip() for line in lines[1 : lines.index("", 1)] if line.strip())
    assert "…" not in head
    assert "error within 0.21 % of the recording" in head


def test_where_no_line_is_known_it_is_said_what_records_them(report):
    bare = dataclasses.replace(report, lines=[dataclasses.replace(line, place=None) for line in report.lines])
    assert "`syncscope run` records lines" in printed(bare, 120)
    assert "`syncscope run` records lines" not in printed(report, 120)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_what_would_help_is_named_in_full_on_any_terminal(report, width):
    name = "the host's own work between lines 106 and 85 of a/folder/train.py is free"
    long = dataclasses.replace(report, what_if=(dataclasses.replace(report.what_if[0], name=name),))
    said = printed(long, width).partition("What would help")[2].partition("Fixing")[0]
    words = [word for line in said.splitlines() for word in line.split()]
    at = words.index("if")
    assert [word for word in words[at:] if word in f"if {name}".split()][
        : len(name.split()) + 1
    ] == f"if {name}".split()


def test_columns_that_find_no_room_are_named(report):
    assert "no room for idle after, alone, last, between: a wider terminal has them" in printed(report, 80)
    assert "no room for" not in printed(report, 140)
    whole = printed_whole(report, 80)
    assert "alone, last" not in whole.partition("Fixing")[2], "what is not shown is not explained"


def printed_whole(report: Report, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(terminal.render(report, width, whole=True))
    return console.file.getvalue()


def test_in_short_what_matters_is_there_and_where_the_rest_is(report):
    lines = (*report.lines, *(Line("item", Place("a.py", n), 1, 1.0, 0.0) for n in range(1, 9)))
    notes = tuple(f"note {n}" for n in range(9))
    many = dataclasses.replace(report, lines=lines, notes=notes)
    short, whole = printed(many, 100), printed_whole(many, 100)
    assert short.count("\n") < 0.6 * whole.count("\n")
    assert "train.py:5" in short
    assert "a.py:7" not in short
    assert "and 9 more, each below 0.5% of a step" in short
    assert "Shapley" not in short
    assert "`syncscope report --all` has every line" in " ".join(short.split())
    assert "a.py:7" in whole
    assert "Shapley" in whole
    assert "note 8" in whole


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_the_rewrite_of_a_line_or_where_to_read_of_one_is_whole_on_any_terminal(report, width):
    said = " ".join(printed(report, width).split())
    assert "rewrite: torch.where instead of index assignment (safe)" in said
    assert "no rewrite fits: syncscope explain unique" in said


def test_where_the_answer_is_unknown_every_note_is_shown(report):
    notes = tuple(f"cause {letter}" for letter in "abcd")
    unknown = dataclasses.replace(report, notes=notes, answer=Answer(Decision.UNKNOWN, why="record again"))
    leave = dataclasses.replace(unknown, answer=Answer(Decision.LEAVE, 0.0))
    for given, shown in ((unknown, 4), (leave, 2)):
        text = printed(given, 100)
        assert sum(note in text for note in notes) == shown


@pytest.mark.parametrize(("width", "apart"), [(100, False), (80, True)])
def test_the_whole_has_every_row_of_what_would_help_and_a_legend_of_the_lines(report, width, apart):
    many = tuple(dataclasses.replace(report.what_if[0], name=f"row {n}") for n in range(9))
    text = " ".join(printed_whole(dataclasses.replace(report, what_if=many), width).split())
    assert "if row 8" in text
    assert "more" not in text.split("if row 0")[1].split("if row 8")[0]
    assert ("what backward() launches for it, which is not shown" in text) == apart
    assert "of step: the device's time in what the line launches" in text


def test_a_line_that_waits_in_some_steps_alone_is_marked_and_one_that_waits_in_each_is_not():
    """Once in an epoch, say: its mean a step may be more than that of what waits in each."""
    step = [("launch", 0, 3 * MS), ("read", 57, 0), ("work", MS)]
    found = summarize(Device().run([*[step] * 7, [*step, ("launch", 0, 5 * MS), ("read", 80, 0)], *[step] * 4])[0])
    said = printed_whole(found, 100).partition("Where the host waits")[2].partition("What would help")[0]
    each, once = (said.partition(f"train.py:{line} ")[2] for line in (57, 80))
    assert "not in every step: 1 in 1 of the 10 that are counted, none in the others" in once
    assert "not in every step" not in each.partition("train.py:80")[0]


def test_the_commands_that_show_and_make_the_rewrites_of_these_lines_are_named(report):
    """A recording may find dear what the linter leaves out by default, for something waits beside it."""
    file = dataclasses.replace(report, name="runs/a b.json.gz")
    said = " ".join(printed(file, 100).split())
    assert "fixes `syncscope lint --diff --trace 'runs/a b.json.gz' train.py` shows what they change" in said
    assert "`syncscope lint -i --all train.py` makes those you choose" in said
    kept = dataclasses.replace(report, name="kept in memory")
    assert "`syncscope lint --diff --all train.py` shows" in " ".join(printed(kept, 100).split())
    lines = tuple(dataclasses.replace(line, finding=None) for line in report.lines)
    assert "syncscope lint" not in printed(dataclasses.replace(report, lines=lines), 100)
