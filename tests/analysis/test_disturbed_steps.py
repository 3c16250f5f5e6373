"""Where the device is a processor and others had it now and then, the steps in which they had the least of it are counted."""

from dataclasses import replace

import pytest
from drawn import Device

from syncscope.analysis.summary import summarize
from syncscope.exporters import _figures as figures
from syncscope.model.answer import Decision

MS = 1_000_000


def recorded(lengths, others=0.4, rare=0, processor=True):
    """Steps whose kernel took so many ms, then a read and 2 ms of the host; with `rare` another read in each so-manieth."""
    program = [
        [("launch", 0, int(ms * MS)), ("read", 57, 0), ("work", 2 * MS)]
        + [("launch", 0, 6 * MS), ("read", 58, 0)] * bool(rare and n % rare == rare - 1)
        for n, ms in enumerate(lengths)
    ]
    return beside(Device().run(program)[0], others, processor)


def beside(trace, others, processor=True):
    return replace(
        trace, meta=trace.meta | {"others": others, "devices": [{"name": "a processor", "processor": processor}]}
    )


DISTURBED = [9] * 10 + [5] * 12 + [8] * 4


def test_the_shortest_half_that_follow_one_another_are_counted():
    report = summarize(recorded(DISTURBED))
    assert [n for n, step in enumerate(report.steps) if not step.disturbed] == list(range(10, 22))
    assert report.step == pytest.approx(7 * MS, rel=0.1)
    assert report.answer.share == pytest.approx(2 / 7, abs=0.03)
    assert figures.counted(report) == "12 counted: other programs had more of the processors in the other 14"


def test_beside_others_only_what_is_much_is_told_to_be_fixed():
    """A host that waits no longer takes processors that the device works with."""
    assert summarize(recorded([5] * 20)).answer.decision is Decision.FIX
    report = summarize(recorded([12] * 20))
    assert report.answer.decision is Decision.TRY
    assert report.answer.why.startswith("others had the processors, which are the device, for 40% of its time")
    assert report.lines[0].answer.decision is Decision.TRY
    assert "` measures it, and says where 2m are too few" in report.verdict
    for quiet in ({"others": 0.05}, {"processor": False}):
        assert summarize(recorded([12] * 20, **quiet)).answer.decision is Decision.FIX


def test_the_command_that_is_printed_measures_all_lines_of_what_is_to_be_fixed_together():
    step = [("launch", 0, 6 * MS), ("read", 57, 0), ("work", MS), ("launch", 0, 6 * MS), ("read", 58, 0), ("work", MS)]
    together = [("launch", 0, 6 * MS), ("read", 57, 0), ("read", 58, 0), ("work", 2 * MS)]
    for program, decision in ((step, Decision.TRY), (together, Decision.FIX)):
        report = summarize(beside(Device().run([program] * 20)[0], 0.4))
        assert report.answer.decision is decision
        assert "Fixing 2 lines" in report.verdict
        command = "syncscope verify --budget 2m --line train.py:57 --line train.py:58 YOUR_PROGRAM.py"
        assert f"`{command}` measures these 2 lines" in report.verdict


def test_a_command_for_another_line_than_what_comes_first_names_it():
    step = [("launch", 0, 6 * MS), ("read", 57, 0), ("work", 5 * MS), ("launch", 0, 6 * MS), ("read", 58, 0)]
    report = summarize(Device().run([[*step, ("work", 0.4 * MS), ("launch", 0, 2 * MS)]] * 20)[0])
    assert "Fixing one line saves 5.0 ms of 19.4 ms per step (25.8%): `item` at train.py:57" in report.verdict
    assert "--line train.py:58 YOUR_PROGRAM.py` measures whether train.py:58 is worth it, too" in report.verdict


@pytest.mark.parametrize("told", [{"others": 0.05}, {"processor": False}, {"rare": 8}])
def test_of_a_quiet_machine_of_a_gpu_and_of_steps_that_read_otherwise_all_are(told):
    report = summarize(recorded(DISTURBED, **told))
    assert not any(step.disturbed for step in report.steps)
    assert report.steady == 24
    assert figures.counted(report) == "24 counted: without the first and the last"


def test_of_few_steps_all_are():
    assert summarize(recorded([9, 5, 9, 5, 9, 5])).steady == 4
