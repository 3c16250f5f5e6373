"""Where the device stands still in every step for what was not recorded; and steps that the device counts, not the host."""

from dataclasses import replace

from drawn import timeline

from syncscope.analysis.summary import summarize
from syncscope.kineto import read

LATE = """
    steps  1=========|2=========|3=========|4=========|
    host   ab.........cd.........ef.........gh.........
    gpu    .AA.....BB..CC.....DD..EE.....FF..GG.....HH.
"""


def named(drawn, **names):
    trace = timeline(drawn)
    return replace(trace, names=tuple(names.get(name, name) for name in trace.names))


def test_what_comes_again_in_every_step_is_no_matter_of_a_quiet_machine():
    report = summarize(named(LATE, **dict.fromkeys("BDFH", "Memset (Device)")))
    assert "in each of 4 steps the device stands still for" in report.recurring
    assert "before `Memset (Device)` on" in report.recurring


def test_before_other_work_in_each_step_it_may_be_chance():
    assert summarize(timeline(LATE)).recurring == ""


def test_a_gap_before_the_same_fill_in_each_step_of_a_real_recording(shared):
    report = summarize(read(shared / "traces" / "a100_train_16ranks_rank0_945item_cudagraph.json.gz"))
    assert report.recurring == (
        "in each of 5 steps the device stands still for 63.3 ms to 64.6 ms before `Memset (Device)` on stream 7"
    )
    assert "a quieter machine does not change that" in report.verdict
    assert "nothing else to do" not in report.verdict
    assert report.answer is not None
    assert "nothing else to do" not in report.answer.why
    assert report.coverage is not None
    assert report.coverage.words.startswith("enough for syncs, not for what lines save, as no replay fits")


def test_steps_that_the_device_counts_are_said_to_be_of_it(shared):
    report = summarize(read(shared / "traces" / "mi300x_resnet_train_fsdp8_rank0_stacks.json.gz"))
    assert any("marks steps of" in note for note in report.notes)
    assert not any("marks steps of" in note for note in summarize(timeline(LATE)).notes)
