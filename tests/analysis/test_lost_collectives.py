"""Collectives of which a rank lost some: they are matched by when they end, and nobody is blamed for what is missing."""

from collections import Counter
from dataclasses import replace

import pytest
from drawn_ranks import MS, dlrm, ranks_of

from syncscope import kineto
from syncscope.analysis.entries import HostOrder
from syncscope.analysis.job import job
from syncscope.analysis.meeting_key import MeetingKey
from syncscope.analysis.rank import rank_of


def lost(rank, *which):
    """A rank whose recording lost these of its collectives: their kernels are gone, and those behind count anew."""
    kept = [one for number, one in enumerate(rank.collectives) if number not in which]
    counts = Counter()
    found = []
    for one in kept:
        of_kind = one.key.of_kind
        found.append(replace(one, key=MeetingKey(*of_kind, counts[of_kind])))
        counts[of_kind] += 1
    moved = {number: at for at, number in enumerate(n for n in range(len(rank.collectives)) if n not in which)}
    entries = []
    for entry in rank.graph.stream:
        at = getattr(entry, "collective", -1)
        entries.append(entry._replace(collective=moved.get(at, -1)) if at >= 0 else entry)
    return replace(rank, collectives=tuple(found), graph=replace(rank.graph, stream=HostOrder.of(entries)))


def without_steps(rank):
    """As if no step had been marked."""
    ordinals = (replace(c, key=c.key._replace(step=-1, ordinal=n)) for n, c in enumerate(rank.collectives))
    return replace(rank, collectives=tuple(ordinals))


UNLIKE_STEPS = (0, 700_000, 3 * MS, 1_300_000)  # by how much each is late in its turn


def jittering(steps=8, **more):
    """Four ranks, of which another one is late in each step, and by another time."""
    return ranks_of(*(lambda step, r=r: UNLIKE_STEPS[(step * step + r) % 4] for r in range(4)), steps=steps, **more)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("which", [(0,), (3,), (2, 5), (7,)])
def test_a_lost_event_blames_no_rank_that_was_not_late(marked, which):
    ranks = [rank if marked else without_steps(rank) for rank in jittering()]
    whole, found = job(ranks), job([ranks[0], ranks[1], lost(ranks[2], *which), ranks[3]])
    assert len(whole.meets) == 8
    told = [(meet.late, meet.skew, meet.imposed) for n, meet in enumerate(whole.meets) if n not in which]
    assert [(meet.late, meet.skew, meet.imposed) for meet in found.meets] == [pytest.approx(each) for each in told]
    assert [rank.offset for rank in found.ranks] == [0] * 4
    assert found.unmatched == len(which)
    assert any("lack" in note and "(2)" in note for note in found.notes)


def test_the_clocks_of_ranks_that_lost_events_are_set_all_the_same():
    ranks = [without_steps(rank) for rank in jittering(clock=(0, 5 * 10**9, -3 * 10**9, 0))]
    found = job([ranks[0], lost(ranks[1], 0), ranks[2], lost(ranks[3], 4)])
    assert [rank.offset for rank in found.ranks] == [0, -5 * 10**9, 3 * 10**9, 0]
    assert len(found.meets) == 6


def test_of_passes_that_take_the_same_time_those_are_matched_that_the_clocks_say():
    first, second = (without_steps(rank) for rank in ranks_of(0, MS, steps=8))
    found = job([first, lost(second, 0)])
    assert found.ranks[1].offset == pytest.approx(0, abs=1000)
    assert len(found.meets) == 7


def test_collectives_that_do_not_end_together_are_no_wait_of_anybody():
    first, second = ranks_of(0, MS, steps=8)
    apart = [
        replace(c, end=c.end + 20 * MS, start=c.start + 20 * MS) if n % 4 == 1 else c
        for n, c in enumerate(second.collectives)
    ]
    found = job([first, replace(second, collectives=tuple(apart))])
    assert len(found.meets) == 6
    assert found.unmatched == 4
    assert found.untold > 0
    assert any("4 kernels of collectives have no counterpart" in note for note in found.notes)


def test_of_real_ranks_of_which_events_are_missing_nobody_is_blamed(shared):
    """Two of 128 ranks, thinned: some kernels end within a millisecond of one of the other rank, and most do not."""
    files = sorted((shared / "traces" / "multirank_sampled128").glob("*.json.gz"))
    found = job([rank_of(kineto.read(file), name=file.name) for file in files])
    assert found.meets == ()
    assert found.unmatched == 20
    assert any("which ranks take part in 20 of them nobody can tell" in note for note in found.notes)


def test_a_collective_that_one_real_rank_lost_leaves_the_others_as_they_were(shared):
    ranks = dlrm(shared)
    found = job([lost(rank, 1) if rank.number == 3 else rank for rank in ranks])
    whole = [(pytest.approx(meet.imposed, abs=2_000), meet.late) for meet in job(ranks).meets]
    assert len(found.meets) == 7
    assert all((meet.imposed, meet.late) in whole for meet in found.meets)
