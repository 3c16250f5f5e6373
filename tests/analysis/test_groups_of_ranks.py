"""Collectives of several groups of ranks, whose recordings say who takes part, say it in part, or do not say it."""

from dataclasses import replace

import pytest
from drawn_ranks import MS, grid_of, launch, work
from effort import draws, some

from syncscope import kineto
from syncscope.analysis import fleet
from syncscope.analysis.job import job
from syncscope.analysis.members import SaidByOperators, group_of, in_short
from syncscope.analysis.rank import rank_of
from syncscope.model.detail import Detail
from syncscope.model.trace import Event, Kind, Lane, Trace

LATE = 150_000
TOGETHER, APART = (), (0, 3 * MS, -40 * MS, 5_000 * MS) * 4  # their clocks


def imposed(found):
    return [pytest.approx(rank.imposed, abs=20_000) for rank in found.ranks]


@pytest.mark.parametrize(
    ("world", "width", "clock"),
    some(
        [
            *((4, 2, TOGETHER), (4, 2, APART), (8, 2, APART), (8, 2, TOGETHER)),
            *((8, 4, TOGETHER), (8, 4, APART), (16, 4, APART), (16, 4, TOGETHER)),
        ]
    ),
)
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


def test_sql_over_the_tables_finds_the_groups_that_the_replay_finds(tmp_path):
    """Rows and columns are called alike: taken for one group, the n-th of a rank is often that of another group elsewhere."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    late = [LATE if rank == 3 else 0 for rank in range(8)]
    slowest = []
    for named in (True, False):
        ranks = grid_of(*late, named=named, width=4, seed=3, clock=(0, 3 * MS, -40 * MS, 5_000 * MS) * 2)
        for rank in ranks:
            fleet.store(rank, tmp_path / str(named))
        told = fleet.stragglers(tmp_path / str(named))
        assert (told[0]["rank"], sum(row["times"] for row in told)) == (3, len(job(ranks).meets))
        slowest.append(float(told[0]["imposed"]))
    assert slowest[0] == pytest.approx(slowest[1], rel=0.05)


@pytest.mark.parametrize("seed", range(draws(6)))
def test_groups_that_others_keep_together_are_told_apart_by_those_that_always_end_together(seed):
    """Rows keep their ranks together, so most averages of one column end with those of the other, too."""
    found = job(grid_of(0, 0, 0, 0, steps=20, seed=seed, chance_of=110_000, apart=40_000))
    (note,) = [note for note in found.notes if "name no group" in note]
    assert set(note.rpartition("of the ranks ")[2].split("; ")) == {"0-1", "2-3", "0,2", "1,3"}


def test_groups_of_one_name_are_told_apart_by_their_ranks():
    """Ranks that split a group each call their own part alike."""
    found = job(grid_of(0, LATE, 0, 0, named=True))
    assert {meet.key.group for meet in found.meets} == {"rows 0-1", "rows 2-3", "columns 0,2", "columns 1,3"}
    assert max(found.ranks, key=lambda rank: rank.imposed).number == 1


def test_of_collectives_of_several_groups_on_one_queue_nobody_is_blamed_for_what_ends_alone():
    told, found = job(grid_of(0, 0, 0, LATE, named=True)), job(grid_of(0, 0, 0, LATE, queues=(20, 20)))
    assert {meet.key.group for meet in found.meets} == {"0-1", "2-3"}
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


@pytest.mark.parametrize(
    ("name", "detail", "elements", "group", "size"),
    [
        ("c10d::allreduce_", Detail(input_dims=([[10, 3], [5]], [])), 35, None, None),
        ("c10d::_allgather_base_", Detail(input_dims=([80, 3], [10, 3], [])), 30, None, 8),
        ("c10d::_reduce_scatter_base_", Detail(input_dims=([10], [160])), 160, "", 16),
        ("c10d::alltoall_base_", Detail(input_dims=([10], [10])), None, None, None),
        ("record_param_comms", Detail(input_dims=([[7]],), concrete_inputs=("", "0", "4", "2")), 7, "0,4", 2),
        ("record_param_comms", Detail(input_dims=([[7]],), concrete_inputs=("", "0", "1", "16")), 7, "", 16),
        ("record_param_comms", Detail(input_dims=([], [])), None, None, None),
        ("aten::mm", Detail(input_dims=([10], [10])), None, None, None),
    ],
)
def test_the_arguments_of_the_operator_tell_how_much_is_sent_and_among_how_many(name, detail, elements, group, size):
    """Of kernels that say nothing: the call that launches one lies in the operator that asked for it."""
    events = [
        Event(Kind.OP, name, Lane(1, 1), 100, 50, detail=detail.text()),
        replace(launch(110, 1), duration=5),
        work("ncclDevKernel_Generic", 200, 30, 1),
    ]
    trace = Trace.of(events, world_size=16)
    row, call = (
        [trace.names[n] for n in trace.name].index(each) for each in ("ncclDevKernel_Generic", "cudaLaunchKernel")
    )
    known = SaidByOperators(trace).known(row, call)
    assert (known.elements, group_of(known, trace.meta), known.group_size) == (elements, group, size)


def test_of_real_kernels_that_say_nothing_the_operators_tell_the_size_of_the_group(shared):
    """The first of 16 ranks, of which 8 share their gradients."""
    rank = rank_of(kineto.read(shared / "traces" / "a100_train_16ranks_rank0_945item_cudagraph.json.gz"))
    assert {one.group_size for one in rank.collectives} == {0, 8}
    assert not any(one.told for one in rank.collectives)
    assert sum(one.elements > 0 for one in rank.collectives) == 20, (
        "what ranks send each other in all to all is not alike"
    )


def test_ranks_in_short():
    assert [in_short(ranks) for ranks in ((0, 1, 2, 3), (0, 4, 8, 12), (5,), (0, 1, 6, 7), ())] == [
        "0-3", "0-12/4", "5", "0-1,6-7", "",
    ]  # fmt: skip
