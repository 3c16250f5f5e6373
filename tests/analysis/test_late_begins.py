"""Ranks of a job whose recordings begin in other steps, or in the middle of one."""

from dataclasses import replace

import pytest
from drawn_ranks import MS, grid_of, ranks_of

from syncscope.analysis.job import job
from syncscope.cli._job_tables import foot

STEPS = 8
CLOCKS = (0, 40 * MS, -40 * MS, 20 * MS)


@pytest.mark.parametrize("first", [2, 5])
def test_what_a_rank_has_of_a_step_in_part_is_matched_by_when_it_ends(first):
    drawn = {"width": 4, "steps": STEPS, "clock": CLOCKS}
    whole, found = (job(grid_of(0, 0, 0, 100_000, **drawn, since=since)) for since in (None, {2: first - 1}))
    assert [rank.offset for rank in found.ranks] == pytest.approx([rank.offset for rank in whole.ranks], abs=5_000)
    told = {meet.key.step for meet in found.meets if meet.key.group == ""}
    assert told == set(range(first - 1, STEPS)), "the others lack this rank"
    assert max(found.ranks, key=lambda rank: rank.imposed).number == 3
    assert any("lack the kernel of a rank (2)" in note for note in found.notes)


def test_nothing_is_told_of_what_syncs_cost_where_a_rank_meets_no_other():
    ranks = ranks_of(0, 0, 0, reads=(0, 1, 2), steps=STEPS)
    alone = [
        replace(one, key=one.key._replace(kind=one.key.kind.replace("AllReduce", "AllGather")))
        for one in ranks[2].collectives
    ]
    found = job([*ranks[:2], replace(ranks[2], collectives=tuple(alone))])
    assert job(ranks).saving is not None
    assert found.saving is None
    assert [rank.saved_alone for rank in found.ranks] == [None] * 3
    assert "No savings: no collective of rank 2 was found on another rank" in found.verdict


def test_of_as_many_steps_as_ranks_meet_in_the_words_and_the_figures_are():
    found = job(grid_of(0, 0, 0, 100_000, width=4, steps=STEPS, clock=CLOCKS, since={2: 2}))
    met = len({meet.step for meet in found.meets})
    assert f"in sum over {met} steps" in found.verdict
    assert f"of the whole recording, {met} steps" in foot(found)
