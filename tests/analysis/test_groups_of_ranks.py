"""Collectives of several groups of ranks, whose recordings say who takes part, say it in part, or do not say it."""

import pytest
from drawn_ranks import MS, grid_of

from syncscope.analysis.job import job
from syncscope.analysis.members import group_of, in_short
from syncscope.model.detail import Detail

LATE = 150_000


def imposed(found):
    return [pytest.approx(rank.imposed, abs=20_000) for rank in found.ranks]


@pytest.mark.parametrize("clock", [(), (0, 3 * MS, -40 * MS, 5_000 * MS) * 4], ids=["one clock", "clocks apart"])
@pytest.mark.parametrize(("world", "width"), [(4, 2), (8, 2), (8, 4), (16, 4)])
def test_who_takes_part_is_found_by_what_ends_together(world, width, clock):
    late = [LATE if rank == 3 else 0 for rank in range(world)]
    more = {"width": width, "clock": clock[:world], "seed": world + width}
    told, found = job(grid_of(*late, named=True, **more)), job(grid_of(*late, **more))
    assert [rank.imposed for rank in found.ranks] == imposed(told)
    assert [rank.late for rank in found.ranks] == [rank.late for rank in told.ranks]
    assert max(found.ranks, key=lambda rank: rank.imposed).number == 3
    assert found.unmatched == 0
    (note,) = [note for note in found.notes if "name no group" in note]
    assert f"those that end together are of the ranks 0-{width - 1}; " in note
    assert not any("name no group" in note for note in told.notes)


def test_groups_of_one_name_are_told_apart_by_their_ranks():
    """Ranks that split a group each call their own part alike."""
    found = job(grid_of(0, LATE, 0, 0, named=True))
    assert {meet.key.split("/")[1] for meet in found.meets} == {"rows 0-1", "rows 2-3", "columns 0,2", "columns 1,3"}
    assert max(found.ranks, key=lambda rank: rank.imposed).number == 1


def test_of_collectives_of_several_groups_on_one_queue_nobody_is_blamed_for_what_ends_alone():
    told, found = job(grid_of(0, 0, 0, LATE, named=True)), job(grid_of(0, 0, 0, LATE, queues=(20, 20)))
    assert {meet.key.split("/")[1] for meet in found.meets} == {"0-1", "2-3"}
    assert found.unmatched == len(told.meets) - len(found.meets) + 8
    assert all(rank.imposed <= of.imposed * 1.5 for rank, of in zip(found.ranks[::3], told.ranks[::3], strict=True))


def test_of_too_few_collectives_nobody_can_tell_who_takes_part():
    found = job(grid_of(0, 0, 0, LATE, count=1, steps=3))
    assert found.meets == ()
    assert [rank.imposed for rank in found.ranks] == [0] * 4
    assert any("which ranks take part in 24 of them nobody can tell" in note for note in found.notes)
    assert "comes last" not in found.verdict


@pytest.mark.parametrize(
    ("known", "meta", "group"),
    [
        (Detail(process_group="tp"), {}, "tp"),
        (Detail(process_group="tp", group_ranks="[0, 1]"), {"world_size": 8}, "tp 0-1"),
        (Detail(process_group="tp"), {"world_size": 8, "groups": {"tp": [0, 4], "all": [*range(8)]}}, "tp 0,4"),
        (Detail(process_group="0", group_ranks="[0, 1, 2, 3]"), {"world_size": 4}, "0"),
        (Detail(group_size=4), {"world_size": 4}, ""),
        (Detail(), {"world_size": 4, "groups": {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3], "2": [0]}}, ""),
        (Detail(), {"world_size": 4, "groups": {"0": [0, 1, 2, 3], "1": [0, 1]}}, None),
        (Detail(group_size=2), {"world_size": 4}, None),
        (Detail(), {}, None),
    ],
)
def test_what_a_recording_says_of_a_group(known, meta, group):
    assert group_of(known, meta) == group


def test_ranks_in_short():
    assert [in_short(ranks) for ranks in ((0, 1, 2, 3), (0, 4, 8, 12), (5,), (0, 1, 6, 7), ())] == [
        "0-3", "0-12/4", "5", "0-1,6-7", "",
    ]  # fmt: skip
