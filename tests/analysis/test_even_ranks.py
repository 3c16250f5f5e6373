"""Ranks that hold each other up by chance are about even; one that is slower than that is named."""

import random

import pytest
from drawn_ranks import MS, ranks_of

from syncscope import kineto
from syncscope.analysis.job import job
from syncscope.analysis.rank import rank_of


def drawn(seed, count, steps, late=0):
    """Ranks whose host work varies by a third of a millisecond in each step; that of rank 1 is so much longer."""
    rng = random.Random(seed)
    times = [[round(abs(rng.gauss(0.3, 0.2)) * MS) + late * (r == 1) for _ in range(steps)] for r in range(count)]
    return job(ranks_of(*(own.__getitem__ for own in times), steps=steps))


@pytest.mark.parametrize(("count", "steps"), [(2, 20), (8, 5)])
def test_ranks_that_vary_alike_are_about_even(count, steps):
    found = [drawn(seed, count, steps) for seed in range(8)]
    even = [one for one in found if one.even]
    assert len(even) >= 6  # one in twenty is not
    assert all("The ranks are about even: that which the others wait for most, rank " in one.verdict for one in even)
    assert all(f"no more than {steps} steps have by chance" in one.verdict for one in even)


@pytest.mark.parametrize(("count", "steps"), [(2, 20), (8, 12)])
def test_a_rank_that_is_slower_in_each_step_is_named(count, steps):
    for found in (drawn(seed, count, steps, late=MS // 2) for seed in range(4)):
        assert found.even is False
        assert found.verdict.startswith("Rank 1 comes last to ")


def test_a_rank_for_which_the_others_hardly_wait_is_even_with_them():
    found = job(ranks_of(0, 10_000, steps=8))
    assert found.even
    assert "over 8 steps, which is 0.1% of a step." in found.verdict


def test_of_few_steps_nobody_can_tell():
    assert drawn(0, 2, 4).even is None
    assert "about even" not in drawn(0, 2, 4).verdict


def test_ranks_that_come_at_one_moment_are_even():
    found = job(ranks_of(0, 0, steps=4))
    assert found.even
    assert "all come to their collectives at one moment" in found.verdict


def test_of_ranks_whose_collectives_do_not_meet_nobody_can_tell(shared):
    """Every other event of these two is missing: none of their collectives is found on both."""
    found = job(
        [
            rank_of(kineto.read(shared / "traces" / "multirank_sampled128" / f"rank-{n}.json.gz"), number=n)
            for n in range(2)
        ]
    )
    assert found.even is None
