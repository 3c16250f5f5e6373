"""`syncscope report --max-saving`, `--max-syncs-per-step`: a gate, which names the lines that break it."""

import json
from dataclasses import replace

import pytest
from cli.recorded import MS, outcome, recording

from syncscope import kineto
from syncscope.cli import _gate, _limits, commands
from syncscope.errors import UserError
from syncscope.model.answer import Answer, Decision
from syncscope.model.report import Line, Price, Report, Step
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Trace


def test_the_gate_names_the_lines(folder):
    code, out, err = outcome("run.pt.trace.json.gz", "--max-syncs-per-step", "0.5", "--format", "json")
    assert code == 1
    assert json.loads(out)
    assert err == (
        "1 sync per step is more than the 0.5 allowed:\n  /cluster/me/project/train.py:7: item: 1 per step\n"
    )
    assert outcome("run.pt.trace.json.gz", "--max-reads-per-step", "1")[0] == 0


@pytest.mark.parametrize("flags", [Flag.NONE, Flag.BLOCKING])
def test_a_limit_that_holds_says_which_uploads_it_does_not_count(folder, flags):
    """On `ocl` nobody waits for them: a gate of no syncs was passed in silence by a step that waits for two on CUDA."""
    whole = recording("/cluster/me/project/train.py")
    host = next(event.lane for event in whole if event.kind is Kind.CALL)
    copies = [
        Event(Kind.CALL, "clEnqueueWriteBuffer", host, (10 * n + 9) * MS, 9000, 200 + n, place=place, flags=flags)
        for n in range(5)
        for place in [Place("/cluster/me/project/train.py", 5)]
    ]
    kineto.save(Trace.of(sorted([*whole, *copies], key=lambda event: event.start)), "up.pt.trace.json.gz")
    code, out, err = outcome("up.pt.trace.json.gz", "--max-syncs-per-step", "5")
    assert code == 0
    said = "1 copy to the device per step is no sync here (/cluster/me/project/train.py:5)"
    assert (f"note: --max-syncs-per-step holds, but {said}" in err) == (flags is Flag.NONE)
    assert (said in " ".join(out.split())) == (flags is Flag.NONE)
    shows = "`syncscope lint --all --min-confidence low /cluster/me/project/train.py` says what to write instead"
    assert (shows in err) == (flags is Flag.NONE)
    assert outcome("up.pt.trace.json.gz")[2] == "", "nothing is said of a limit that was not given"


def test_what_the_cpu_computed_and_sends_back_is_no_copy_of_the_program(folder):
    """`bincount` on `ocl`: its own upload was told as a copy for which CUDA waits, and for which the linter knows better."""
    whole = recording("/cluster/me/project/train.py")
    host, at = next(event.lane for event in whole if event.kind is Kind.CALL), Place("/cluster/me/project/train.py", 5)
    upload = [
        event
        for n in range(5)
        for event in (
            Event(
                Kind.OP,
                "fallback of aten::bincount",
                host,
                (10 * n + 9) * MS - 9000,
                20000,
                place=at,
                flags=Flag.FALLBACK,
            ),
            Event(Kind.CALL, "clEnqueueWriteBuffer", host, (10 * n + 9) * MS, 9000, 200 + n, place=at),
        )
    ]
    kineto.save(Trace.of(sorted([*whole, *upload], key=lambda event: event.start)), "up.pt.trace.json.gz")
    code, out, err = outcome("up.pt.trace.json.gz", "--max-syncs-per-step", "5")
    assert (code, "copy to the device" in out + err) == (0, False)


@pytest.mark.parametrize("given", ["2%", "2", "2.0 %"])
def test_a_price_is_a_share_of_the_step(given):
    option = next(p for p in commands.get_command(None, "report").params if p.name == "max_price")
    assert option.type.convert(given, None, None) == pytest.approx(0.02)


@pytest.mark.parametrize("given", ["0.05", ".05", "0.05%", "5%", "5"])
def test_a_part_that_is_meant_as_percent_is_answered_with_the_sign(folder, given):
    """0.05 is a twentieth of one percent: a gate that always breaks, where five percent were meant."""
    _, _, said = outcome("run.pt.trace.json.gz", "--max-saving", given)
    hint = f"--max-saving {given} is {given} % of a step; for 5 % write 5%"
    assert (hint in said) == (given in ("0.05", ".05"))


def broken(report, most_syncs, most_saving):
    """The lines by which limits are broken."""
    given = list(_gate.limits(report, most_syncs, most_saving))
    for limit in given:
        if limit.error is not None:
            raise limit.error
    return [line for limit in given for line in limit.broken]


def test_a_price_gate_is_broken_by_the_lower_end_and_names_the_lines():
    at = Place("a.py", 3)
    steps = tuple(Step(n, 100 * n, 100 * n + 100, 50) for n in range(3))
    lines = (
        Line("item", at, 2.0, 30.0, 10.0, answer=Answer(Decision.TRY, 0.05, 0.03, 0.08)),
        Line("to", None, 1.0, 30.0, 10.0, price=Price(0.0, 3.0, 1.0, 0.0), fallback=True),
    )
    report = Report(steps=steps, lines=lines, answer=Answer(Decision.FIX, 0.06, 0.04, 0.09), fidelity=0.0)
    assert broken(report, 2, 0.04) == []  # by the lower end
    assert broken(report, 1.9, None) == [
        "2 syncs per step are more than the 1.9 allowed:",
        "  a.py:3: item: 2 per step",
    ]
    assert broken(report, None, 0.039) == [
        "the syncs likely cost 6.0 % of a step (4.0 to 9.0 %): more than the 3.9 % allowed:",
        "  a.py:3: item: 5.0 % of a step (3.0 to 8.0 %)",
    ]
    with pytest.raises(UserError, match="--max-saving 10% cannot be judged: savings were not asked for"):
        broken(replace(report, answer=Answer(Decision.UNKNOWN)), None, 0.1)
    with pytest.raises(UserError, match="--max-syncs-per-step 3 cannot be judged: no step is marked"):
        broken(replace(report, steps=()), 3, None)


@pytest.mark.parametrize("off", [{"fidelity": 0.3}, {"fidelity": 0.0, "unexplained": 0.3}])
def test_no_limit_is_held_to_a_recording_of_which_no_replay_is_trusted(off):
    lines = (Line("item", Place("a.py", 3), 2.0, 30.0, 10.0),)
    found = Answer(Decision.TRY, 0.3, 0.1, 0.5)
    report = Report(steps=(Step(0, 0, 100, 50),), lines=lines, answer=found, **off)
    for limit in (0.05, 0.2, 0.4):  # below what it lies between, and within
        with pytest.raises(UserError) as error:
            broken(report, None, limit)
        assert f"the syncs likely cost {found.told('of a step')}, and no limit is held to that: " in error.value.message
        assert "30.0%" in error.value.message
        assert "the limit is" not in error.value.message
        assert "4 in 5" not in error.value.message
    assert broken(report, None, 0.6) == []  # above all that it may be


def test_what_holds_is_said_with_what_was_found(folder):
    """A gate that holds printed nothing of what it had measured."""
    code, _, err = outcome("run.pt.trace.json.gz", "--max-syncs-per-step", "1", "--max-saving", "99%")
    assert code == 0
    assert "--max-syncs-per-step 1 holds: 1 sync per step\n" in err
    assert "--max-saving 99% holds: the syncs likely cost " in err


def test_what_cannot_be_judged_is_one_sentence_where_it_stands_on_one_line():
    found = Answer(Decision.TRY, 0.3, 0.1, 0.5, loops=20)
    lines = (Line("item", Place("a.py", 3), 2.0, 30.0, 10.0),)
    report = Report(steps=(Step(0, 0, 100, 50),), lines=lines, answer=found, fidelity=0.3)
    (limit,) = _gate.limits(report, None, 0.2)
    assert limit.words.startswith(
        "--max-saving 20% cannot be judged: the syncs likely cost 30 % of a step (10 to 50 %), and no limit is held to that: a "
        "replay gets 30.0% of a step wrong or cannot explain it, more than 5%; "
    )
    assert limit.words.endswith(", or limit the number of syncs with --max-syncs-per-step")
    assert not any(mark in limit.words for mark in (".:", ": :", "Until then"))


def test_what_breaks_a_limit_is_one_line_where_a_format_has_but_one():
    several = _limits.GivenLimit("--max-wait-for-rank 1%", ("the others wait for rank 1", "the others wait for rank 2"))
    assert several.words == "the others wait for rank 1; the others wait for rank 2"
    listed = _limits.GivenLimit(
        "--max-syncs-per-step 1", ("2 syncs are more than 1:", "  a.py:1: item", "  a.py:2: cpu")
    )
    assert listed.words == "2 syncs are more than 1: a.py:1: item; a.py:2: cpu"


def test_a_limit_is_judged_alike_wherever_the_source_is(folder):
    limits = [("--max-saving", f"{percent}%") for percent in (0, 5, 10, 15, 20, 25, 30, 35, 40, 50)]
    here = [outcome("run.pt.trace.json.gz", "--source", "project", *limit) for limit in limits]
    elsewhere = [outcome("run.pt.trace.json.gz", *limit) for limit in limits]
    assert [code for code, _, _ in here] == [code for code, _, _ in elsewhere]
    assert {code for code, _, _ in here} == {0, 1}
    code, _, said = here[0]
    assert code == 1
    assert "the syncs likely cost" in said
    assert said.partition("allowed:")[2].strip(), "and by which lines"


def test_a_limit_that_nobody_can_judge_says_that_savings_were_not_asked_for(folder):
    code, _, said = outcome("run.pt.trace.json.gz", "--no-savings", "--max-saving", "2%")
    assert code == 2
    assert "cannot be judged: savings were not asked for (`--no-savings`)" in said
    assert outcome("run.pt.trace.json.gz", "--max-saving", "101%")[0] == 2


@pytest.mark.parametrize("form", ["terminal", "github"])
def test_a_limit_that_is_surely_broken_outranks_one_that_nobody_can_judge(folder, form):
    limits = ("--no-savings", "--max-saving", "2%", "--max-syncs-per-step", "0.5", "--format", form)
    code, out, err = outcome("run.pt.trace.json.gz", *limits)
    assert code == 1
    assert "more than the 0.5 allowed" in out + err
    assert "cannot be judged: savings were not asked for" in out + err


@pytest.fixture
def runs(folder):
    """A recording that waits, one that does not, one without steps, and one that cannot be read."""
    whole = recording("/cluster/me/project/train.py")
    quiet = [event for event in whole if event.kind is not Kind.READ and event.correlation < 100]
    unmarked = [event for event in whole if event.kind is not Kind.STEP]
    for name, events in {"waits": whole, "quiet": Trace.of(quiet), "unmarked": Trace.of(unmarked)}.items():
        (folder / "runs" / name).mkdir(parents=True)
        kineto.save(events, folder / "runs" / name / "run.pt.trace.json")
    (folder / "runs" / "damaged.pt.trace.json").write_text('{"traceEvents": [')
    return folder


FORMATS = ((), ("-o", "pages", "--format", "html"), ("-o", "all.json"), ("--format", "github"))


@pytest.mark.parametrize("given", FORMATS, ids=["screen", "pages", "json", "github"])
@pytest.mark.parametrize(
    ("most", "code", "counted"), [("0.5", 1, "1 broken, 2 not judged, 1 held"), ("5", 2, "2 not judged, 2 held")]
)
def test_each_recording_of_a_folder_is_held_to_a_limit_whatever_is_written(runs, given, most, code, counted):
    found, _, err = outcome("runs", "--max-syncs-per-step", most, *given)
    assert found == code
    assert f"limits: {counted}\n" in err
    assert f"runs/unmarked/run.pt.trace.json: --max-syncs-per-step {most} cannot be judged: no step is marked" in err
    assert "runs/damaged.pt.trace.json is no recording of a program" in err
    assert "runs/quiet/run.pt.trace.json: --max-syncs-per-step" in err
    assert ("runs/waits/run.pt.trace.json: 1 sync per step is more than the 0.5 allowed:" in err) == (code == 1)


def test_an_annotation_of_a_limit_names_which_of_several_recordings_breaks_it(runs):
    said = outcome("runs", "--max-syncs-per-step", "0.5", "--format", "github")[1]
    assert "runs/waits/run.pt.trace.json: 1 sync per step is more than the 0.5 allowed" in said
    alone = outcome("runs/waits/run.pt.trace.json", "--max-syncs-per-step", "0.5", "--format", "github")
    assert "::train.py:7:1: 1 sync per step" in alone[1].replace("/cluster/me/project/", "")
    assert "limits: " not in alone[2]
