"""Steps of recordings that stand side by side are bounded in one way, however far ahead each host was."""

from dataclasses import replace

import pytest
from drawn import COLUMN, timeline
from drawn_ranks import MS, ranks_of

from syncscope.analysis.compare import compare
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.job import job
from syncscope.analysis.rank import rank_of
from syncscope.analysis.summary import summarize
from syncscope.model.report import step_lengths

FAR_AHEAD = """
    steps  1=|2=|3=|4=|5=|6=|
    host   a..b..c..d..e..f..
    gpu    .AAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEEEEEEFFFFFFFF
"""
BESIDE_IT = """
    steps  1====|2=====|3======|4======|5======|6=======|
    host   a.....b......c.......d.......e.......f........
    gpu    .AAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEEEEEEFFFFFFFF
"""
DRIFTING = """
    steps  1=====|2=====|3=====|4=====|5=====|6=====|
    host   ab.....cd.....ef.....gh.....ij.....kl.....
    gpu    .AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJKKKKLLLL
"""
IN_STEP = """
    steps  1=======|2=======|3=======|4=======|5=======|6=======|
    host   ab.......cd.......ef.......gh.......ij.......kl.......
    gpu    .AAAABBBB.CCCCDDDD.EEEEFFFF.GGGGHHHH.IIIIJJJJ.KKKKLLLL
"""


def alike(picture):
    """The drawn recording, in which each kernel has one name."""
    trace = timeline(picture)
    return replace(trace, names=tuple("gemm" if len(name) == 1 else name for name in trace.names))


def test_alone_the_two_are_bounded_each_in_its_own_way():
    assert event_graph_of(timeline(FAR_AHEAD)).by_work
    assert not event_graph_of(timeline(BESIDE_IT)).by_work


def test_ranks_of_a_job_have_steps_of_one_length_though_one_host_is_further_ahead():
    ranks = [rank_of(timeline(drawn), number) for number, drawn in enumerate((FAR_AHEAD, BESIDE_IT))]
    found = job(ranks)
    assert [rank.times.step / COLUMN for rank in found.ranks] == [8, 8]
    assert [rank.times.compute / COLUMN for rank in found.ranks] == [8, 8]
    assert found.step == pytest.approx(8 * COLUMN)


@pytest.mark.parametrize("drawn", [FAR_AHEAD, BESIDE_IT, DRIFTING, IN_STEP])
def test_a_report_of_one_rank_has_the_steps_that_the_job_has_of_it(drawn):
    trace = timeline(drawn)
    trace = replace(trace, meta=trace.meta | {"rank": 0, "world_size": 2})
    counted = summarize(trace)
    assert counted.steps == rank_of(trace).graph.steps
    assert step_lengths(counted.steps)[1:] == [8 * COLUMN] * 5 if drawn != IN_STEP else [9 * COLUMN] * 5


def test_figures_of_all_ranks_are_of_the_same_steps():
    """The sixth step is a long one for both, and one of the two alone would count it."""
    one, other = ranks_of(*[lambda step: 10 * MS if step == 5 else MS] * 2, steps=8)
    steps = tuple(replace(step, settled=step.index < 5) for step in other.graph.steps)
    other = replace(other, graph=replace(other.graph, steps=steps))
    assert 5 in one.counted_steps()
    assert 5 not in other.counted_steps()
    first, second = (rank.times.step for rank in job([one, other]).ranks)
    assert first == second == pytest.approx(2.02 * MS, rel=0.01)


@pytest.mark.parametrize("pictures", [(FAR_AHEAD, BESIDE_IT), (BESIDE_IT, FAR_AHEAD)])
def test_two_recordings_of_a_comparison_are_bounded_alike(pictures):
    found = compare(*(timeline(drawn) for drawn in pictures))
    lengths = [[length / COLUMN for length in step_lengths(each.steps)[1:]] for each in (found.before, found.after)]
    assert lengths == [[8] * 5, [8] * 5]


def test_a_step_has_the_whole_of_the_work_that_its_host_asked_for():
    """A device that falls behind begins less in a time of its host's than the host asks for in it."""
    drifting = alike(DRIFTING)
    assert not event_graph_of(drifting).by_work
    assert compare(drifting, alike(IN_STEP)).kernels == ()
