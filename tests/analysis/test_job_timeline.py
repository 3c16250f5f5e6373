"""What a page draws of a job: a lane for each rank, on one clock, with what each waits marked."""

from dataclasses import replace

import pytest
from drawn_ranks import MS, grid_of, ranks_of

from syncscope.analysis.job import job
from syncscope.analysis.job_timeline import job_timeline


def test_each_rank_waits_until_the_last_has_come_whatever_its_clock_says():
    ranks = ranks_of(0, 3 * MS, MS, clock=(0, 5_000 * MS, -40 * MS))
    found = job_timeline(ranks)
    assert [lane.number for lane in found.lanes] == [0, 1, 2]
    assert [(late, cause) for _, late, cause in found.late] == [(1, "host work")] * 3
    for step in range(3):
        (first, slow, third) = [next(one for one in lane.collectives if one.step == step) for lane in found.lanes]
        assert slow.waits_until == slow.start == first.waits_until == third.waits_until
        if step == 0:  # then their hosts are ahead
            assert (first.waits_until - first.start, third.waits_until - third.start) == (3 * MS, 2 * MS)
        assert first.end == slow.end == third.end
        begin, end = found.lanes[1].steps[step]
        assert begin <= slow.start < slow.end <= end + 3 * MS


def test_waits_are_what_the_job_says_in_sum():
    ranks = grid_of(0, 0, 0, 150_000, named=True)
    drawn = sum(one.waits_until - one.start for lane in job_timeline(ranks).lanes for one in lane.collectives)
    assert drawn == pytest.approx(sum(meet.imposed for meet in job(ranks).meets))


def test_of_collectives_of_which_nobody_knows_who_takes_part_no_wait_is_drawn():
    found = job_timeline(grid_of(0, 0, 0, 150_000, count=1, steps=3))
    assert found.late == ()
    assert all(one.meet == -1 and one.waits_until == one.start for lane in found.lanes for one in lane.collectives)


def test_of_many_ranks_and_steps_those_are_drawn_in_which_most_was_waited():
    ranks = ranks_of(*[0] * 4, lambda step: step * MS, steps=6)
    found = job_timeline(ranks, most=12, lanes=3)
    assert (found.ranks, found.steps) == (5, 6)
    assert 4 in [lane.number for lane in found.lanes]
    assert {one.step for lane in found.lanes for one in lane.collectives} == {2, 3, 4, 5}
    assert set(found.lanes[0].steps) == {2, 3, 4, 5}


def test_ranks_that_do_not_say_their_number_have_that_of_their_place():
    unnamed = [replace(rank, number=-1) for rank in ranks_of(0, MS)]
    assert [lane.number for lane in job_timeline(unnamed).lanes] == [0, 1]
