import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from drawn_ranks import MS, buckets_of, dlrm, launch, ranks_of, traces_of, work

from syncscope import kineto
from syncscope.analysis import fleet
from syncscope.analysis.host_operators import HostOperators
from syncscope.analysis.job import job
from syncscope.analysis.joint_replay import LongerIn
from syncscope.analysis.owed import Arrival, LateBy, Owed, Waits
from syncscope.analysis.rank import rank_of
from syncscope.cli._job_tables import job_name
from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace


def test_ranks_meet_and_the_late_one_is_named():
    found = job(ranks_of(0, 0, 3 * MS, 0))
    assert found.fidelity < 1e-6
    assert {meet.late for meet in found.meets} == {2}
    assert [meet.cause for meet in found.meets] == ["host work"] * 3
    slow = found.ranks[2]
    assert slow.late == 3
    assert slow.imposed == pytest.approx(3 * 3 * 3 * MS, rel=0.1)  # three others, three steps, 3 ms
    assert "Rank 2 comes last to 3 of 3" in found.verdict


def test_a_rank_that_was_late_already_is_so_by_its_host_and_by_no_sync_where_it_makes_none():
    """It spends less on everything than the others since the collective before, to which it came late."""
    found = job(ranks_of(lambda step: MS, lambda step: MS, lambda step: MS * 9 // 10 if step else 4 * MS))
    assert [(meet.late, meet.cause) for meet in found.meets][:2] == [(2, "host work")] * 2


def test_what_follows_from_a_late_start_is_no_host_work():
    """It does all that the others do, no slower, and they never wait for their devices: it stays behind."""
    late = lambda step: 6 * MS if step == 0 else MS  # noqa: E731
    began_late = job(ranks_of(MS, MS, MS, late, steps=6, begins={3: 5 * MS}))
    waited_for = [meet for meet in began_late.meets if meet.late == 3 and not meet.together]
    assert len(waited_for) > 1
    assert {meet.cause for meet in waited_for} == {LateBy.START}
    assert began_late.ranks[3].operators == ()
    worked = job(ranks_of(MS, MS, MS, late, steps=6))
    assert {meet.cause for meet in worked.meets if not meet.together} == {LateBy.HOST}


def test_what_a_rank_does_longer_after_a_late_start_is_its_own():
    """The others wait for their devices in each step, so that the start is made up for in the first."""
    late = lambda step: 6 * MS if step == 0 else 3 * MS  # noqa: E731
    found = job(ranks_of(MS, MS, MS, late, steps=6, reads=range(4), begins={3: 5 * MS}))
    assert [(meet.late, meet.cause) for meet in found.meets] == [(3, LateBy.START), *[(3, LateBy.HOST)] * 5]


def test_where_operators_are_a_small_part_of_a_delay_that_is_told_and_that_its_host_began_later():
    """The hosts of the others are nearly as slow, and 60 ms ahead of their devices when the recording begins."""
    *others, slow = ranks_of(0, 0, MS, steps=12)
    ahead = [
        replace(
            rank,
            collectives=tuple(
                replace(one, hosting=1.9 * MS, work=(("", 1.9 * MS),), queued=one.queued + 60 * MS)
                for one in rank.collectives
            ),
        )
        for rank in others
    ]
    said = job([*ahead, slow]).verdict
    assert "longer outside of operators (24.00 ms, the others 22.80 ms): 1.20 ms of the 10.01 ms by which" in said
    assert "asked for the first of its collectives 61.00 ms later than the others did: what made it late lies" in said
    assert "in sum over 12 steps" in said
    assert "by which it came later" not in job([*others, slow]).verdict, "it is slower by all of that"


def test_the_gain_of_a_rank_on_time_is_as_if_it_came_with_the_one_before_it():
    found = job(ranks_of(0, MS, 3 * MS, reads=[0, 1, 2], steps=8))
    assert [rank.on_time for rank in found.ranks] == [None, None, pytest.approx(2 * MS, rel=0.01)]
    assert "a step would be up to 2.00 ms shorter" in found.verdict
    two = job(ranks_of(0, 3 * MS, 3 * MS, reads=[0, 1, 2], steps=8))
    assert max(rank.on_time or 0 for rank in two.ranks) < 10_000, "the other one is as late"


def test_one_delay_of_several_collectives_counts_once():
    """Each all-reduce shows the delay of those before it again, while the others compute."""
    found = job(buckets_of(0, 0, 0, MS // 5))
    assert found.fidelity < 1e-3
    slow = found.ranks[3]
    assert sum(meet.skew for meet in found.meets) > 1.8 * 4 * 4 * MS // 5
    assert slow.on_time == pytest.approx(4 * MS // 5, rel=0.02)
    assert slow.imposed == pytest.approx(4 * 3 * 4 * MS // 5, rel=0.02)
    for other in found.ranks[:3]:
        assert other.symptom == pytest.approx(4 * MS // 5, rel=0.02)


def test_who_is_late_only_for_what_it_waited_in_another_group_passes_that_on():
    """Ranks 0 and 1 meet, and 2 and 3; then 0 and 2, and 1 and 3. Rank 3 is late to the first of these."""
    waits = Waits()
    first = [Arrival(2, 1.0, 5.0, 0.0), Arrival(3, 5.0, 1.0, 0.0)]
    assert not waits.passed_on(first)
    assert waits.owed(first, LateBy.DEVICE) == (Owed(3, 4.0, LateBy.DEVICE),)
    second = [Arrival(0, 2.0, 6.0, 0.0), Arrival(2, 7.0, 1.0, 0.0)]  # 1 of these 5 is its own
    assert waits.passed_on(second)
    assert set(waits.owed(second, LateBy.OTHERS)) == {Owed(2, 1.0, LateBy.OTHERS), Owed(3, 4.0, LateBy.DEVICE)}
    again = [Arrival(2, 10.0, 3.0, 0.0), Arrival(3, 12.0, 1.0, 0.0)]
    assert not waits.passed_on(again), "what it waited before has been waited for"


STEPPING = (Kind.ANNOTATION, "Optimizer.step#SGD.step")


@pytest.mark.parametrize(
    ("within", "named"),
    [
        ((), ""),
        ([(Kind.OP, "aten::nonzero")], "aten::nonzero"),
        ([STEPPING, (Kind.OP, "aten::add_")], "aten::add_"),
        ([STEPPING], "Optimizer.step#SGD.step"),
    ],
)
def test_what_the_slow_rank_does_longer_is_named_beside_the_others(within, named):
    found = job(ranks_of(0, 0, 3 * MS, 0, within=within))
    (longer,) = found.ranks[2].operators
    usual = 3 * (MS * 3 // 4 if len(within) > 1 else MS)  # in three steps
    assert (longer.name, longer.own, longer.others) == (
        named,
        pytest.approx(usual + 9 * MS, rel=0.02),
        pytest.approx(usual, rel=0.02),
    )
    assert [rank.operators for rank in found.ranks if rank.number != 2] == [(), (), ()]
    said = f"longer in `{named}` (" if named else "longer outside of operators ("
    assert said in found.verdict


def with_operators(late, slower, fewer=()):
    """Ranks whose hosts come late by `late`, and run nine operators before each collective, `slower` times as long; one of them
    twice on the ranks `fewer`."""
    found = []
    for r, trace in enumerate(traces_of(*late)):
        events = list(trace)
        for step in (e for e in trace if e.kind is Kind.STEP):
            at = step.start
            for n in range(10):
                name = "autograd::engine::evaluate_function" if n < 1 else f"aten::op{n}"
                length = round(20_000 * (n or 45) * slower[r])
                events.append(Event(Kind.OP, name, Lane(1, 1), at, length))
                at += length if n else 0
            if r in fewer:
                events.append(Event(Kind.OP, "aten::op9", Lane(1, 1), at - 500, 400))
        found.append(rank_of(Trace.of(events, origin_ns=10**18), number=r, name=f"rank {r}"))
    return found


def test_a_host_that_is_slower_in_all_it_does_is_told_from_one_with_a_slow_operator():
    """Of a rank that came late two operators were named, which were a small part of it."""
    found = job(with_operators((0, 0, 3 * MS, 0), (1.0, 1.01, 1.2, 0.99)))
    (slow,) = found.slow_hosts
    assert (slow.number, slow.backward, slow.operators) == (2, True, 9)
    assert slow.ratio == pytest.approx(1.2, rel=0.02)
    assert "The host of rank 2 takes 1.19 times as long" in found.verdict
    assert "9 operators of the backward pass that all ranks run alike: no single operator" in found.verdict
    assert job(with_operators((0, 0, 3 * MS, 0), (1.0, 1.2, 1.0, 1.0))).slow_hosts == (), "it holds nobody up"
    assert job(with_operators((0, 0, 3 * MS, 0), (0.8, 1.0, 1.2, 1.4))).slow_hosts == (), "they differ all the same"
    assert job(with_operators((0, 0, 3 * MS, 0), (1.0, 1.0, 1.2, 1.0), fewer=[2])).slow_hosts[0].operators == 8


def test_a_call_of_the_driver_within_an_operator_is_not_its_host_work():
    found = job(ranks_of(0, 3 * MS, within=[(Kind.OP, "aten::item"), (Kind.CALL, "cudaStreamSynchronize")]))
    assert found.ranks[1].operators == ()


def test_what_lies_in_no_operator_and_what_began_before_is_cut_at_the_moments_that_are_asked_for():
    lane = Lane(1, 1)
    trace = Trace.of(
        [
            Event(Kind.OP, "aten::mm", lane, 0, 40),
            Event(Kind.OP, "aten::copy_", lane, 10, 10),
            Event(Kind.CALL, "cudaLaunchKernel", lane, 12, 4),
            Event(Kind.ANNOTATION, "forward", lane, 50, 50),
            Event(Kind.OP, "aten::mm", Lane(1, 2), 0, 100),  # another thread
        ]
    )
    of = {known.thread: number for number, known in enumerate(trace.lanes)}
    first, second, none = HostOperators(trace).spent([(of[1], 5, 60), (of[1], 15, 17), (of[1], 60, 60)])
    assert dict(first) == {"aten::mm": 25, "aten::copy_": 6, "": 10, "forward": 10}
    assert (dict(second), none) == ({"aten::copy_": 1}, ())


def test_a_blocked_read_on_a_fast_rank_is_a_symptom():
    found = job(ranks_of(0, 4 * MS, reads=[0]))
    fast = found.ranks[0]
    assert fast.blocked > 4 * MS  # of each step
    assert 0.7 * fast.blocked < fast.symptom <= fast.blocked
    assert fast.saved_alone == pytest.approx(0, abs=10_000)
    (line,) = found.lines
    assert line.price.alone == pytest.approx(0, abs=10_000)
    assert "No sync is worth fixing" in found.verdict


def test_a_read_on_the_late_rank_costs_the_job():
    found = job(ranks_of(0, 0, reads=[0, 1], steps=8))
    (line,) = found.lines
    assert line.ranks == 2
    assert line.price.alone == found.saving
    assert found.saving == pytest.approx(MS, rel=0.1)  # 1 ms of host work hides behind the kernel
    assert found.saving_range == pytest.approx((found.saving, found.saving), rel=0.1)  # its steps are alike
    assert "less, as its steps spread" in found.verdict
    assert found.plan == (0,)


@pytest.mark.parametrize(("rank", "has"), [(1, slice(2, 8)), (1, slice(0, 5)), (0, slice(3, 6)), (2, slice(6, 8))])
def test_a_rank_that_starts_late_or_dies_leaves_a_step_as_long_as_it_is(rank, has):
    whole = job(ranks_of(0, MS, 0, reads=[0, 1, 2], steps=8))
    found = job(ranks_of(0, MS, 0, reads=[0, 1, 2], steps=8, has={rank: range(8)[has]}))
    assert found.step == pytest.approx(whole.step, rel=0.01)
    assert f"of 8 steps rank {rank} has {len(range(8)[has])}" in " ".join(found.notes)
    assert not any("of 8 steps" in note for note in whole.notes)


def test_of_a_rank_with_one_step_nobody_can_tell_what_the_job_saves():
    found = job(ranks_of(0, MS, 0, reads=[0, 1, 2], steps=8, has={1: [4]}))
    assert found.step == pytest.approx(job(ranks_of(0, MS, 0, reads=[0, 1, 2], steps=8)).step, rel=0.01)
    assert found.saving is None
    assert "of rank 1 only one step was recorded" in found.verdict


def test_ranks_without_a_step_in_common_say_so():
    found = job(ranks_of(0, 0, steps=8, has={0: range(4), 1: range(4, 8)}))
    assert any("no step in common" in note for note in found.notes)


def test_too_few_steps_do_not_tell_how_far_a_gain_is_off():
    few = job(ranks_of(0, 0, reads=[0, 1]))
    assert few.saving_range is None
    assert "too few steps to know" in few.verdict


def test_clocks_are_aligned_at_the_ends_of_collectives():
    right = job(ranks_of(0, 2 * MS, 0, reads=[0]))
    wrong = job(ranks_of(0, 2 * MS, 0, reads=[0], clock=(0, 5 * 10**9, -(10**7))))
    assert [rank.offset for rank in wrong.ranks] == [0, -5 * 10**9, 10**7]
    assert wrong.fidelity < 1e-6
    assert [m.skew for m in wrong.meets] == pytest.approx([m.skew for m in right.meets])
    assert wrong.saving == pytest.approx(right.saving)


def test_ranks_without_a_common_collective_are_taken_as_independent():
    first = ranks_of(0, MS)[0]
    alone = replace(
        first,
        number=1,
        collectives=tuple(replace(c, key=c.key._replace(group="other"), told=True) for c in first.collectives),
    )
    found = job([first, alone])
    assert found.meets == ()
    assert any("no counterpart on another rank" in note for note in found.notes)


def test_a_job_needs_ranks_and_different_ones():
    with pytest.raises(UserError, match="no rank"):
        job([])
    with pytest.raises(UserError, match="rank 0 is there twice"):
        job([ranks_of(0)[0]] * 2)


def test_of_eight_real_ranks_it_is_known_who_came_late_and_what_that_costs(shared):
    found = job(dlrm(shared))
    assert found.fidelity < 1e-3
    skews = [round(meet.skew / 1e3) for meet in found.meets]
    assert skews == pytest.approx([7624, 1102, 169, 125, 223, 534, 583, 886], abs=3)
    assert [meet.late for meet in found.meets] == [7, 7, 7, 7, 7, 5, 5, 4]
    assert [meet.cause for meet in found.meets] == [LateBy.START] * 5 + [LateBy.HOST] * 3
    assert "wait 35.45 ms in sum, each 38.1% of a step, mostly by a late start" in found.verdict
    assert "But for that they wait most for rank 5, each 5.6% of a step, mostly by host work" in found.verdict
    assert [(pace.number, round(pace.ratio, 1), pace.backward) for pace in found.slow_hosts] == [
        (4, 1.2, True),
        (5, 1.2, True),
    ]
    assert found.saving / 1e6 == pytest.approx(0.88, rel=0.1)
    assert max(rank.saved_alone for rank in found.ranks) < 0.003 * found.step
    assert sum(rank.symptom for rank in found.ranks) > 0.9 * sum(rank.blocked for rank in found.ranks)


def test_ranks_of_which_events_are_missing_are_not_priced(shared):
    files = sorted((shared / "traces" / "multirank_sampled128").glob("*.json.gz"))
    found = job([rank_of(kineto.read(file), name=file.name) for file in files])
    assert found.saving is None
    assert found.verdict.startswith("126 of 128 ranks are missing (ranks 2, 3, ")
    assert "or for none. No savings: 32% of a step of rank 0 (and of 1 more)" in found.verdict
    assert all(line.price is None for line in found.lines)


@pytest.mark.parametrize("ranks", [64, pytest.param(512, marks=pytest.mark.slow)])
def test_many_ranks_with_shifted_clocks(shared, ranks):
    real = dlrm(shared)
    random = np.random.default_rng(0)
    shifts = random.integers(-(10**9), 10**9, ranks)
    many = [replace(real[n % 8], number=n, origin=real[n % 8].origin + int(shifts[n])) for n in range(ranks)]
    found = job(many)
    few = job(real)
    assert len(found.meets) == 8
    assert found.fidelity < 1e-3
    assert found.saving == pytest.approx(few.saving, rel=0.01)
    assert {meet.late % 8 for meet in found.meets} == {4, 5, 7}


def test_tables_hold_all_that_the_job_needs(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    ranks = ranks_of(0, 2 * MS, 0, reads=[0, 2], clock=(0, 10**9, -(10**6)))
    for rank in ranks:
        fleet.store(rank, tmp_path)
    found = job(ranks)
    again = job(fleet.load(tmp_path))
    assert again == found
    by_sql = fleet.stragglers(tmp_path)
    assert [(row["rank"], row["times"]) for row in by_sql] == [(1, 3)]
    assert float(by_sql[0]["imposed"]) == pytest.approx(found.ranks[1].imposed)
    (line,) = fleet.lines(tmp_path)
    assert (line["path"], line["line"], line["ranks"]) == ("train.py", 9, 2)


def traces(tmp_path, count):
    trace = Trace.of([launch(0, 1), work("ncclKernel_AllReduce(x)", 20_000, MS, 1)], origin_ns=10**18)
    for number in range(count):
        kineto.save(replace(trace, meta=trace.meta | {"rank": number}), tmp_path / f"rank{number}.json.gz")
    return [str(tmp_path / f"rank{number}.json.gz") for number in range(count)]


def test_the_map_runs_over_any_executor_and_one_bad_file_costs_only_itself(tmp_path):
    paths = traces(tmp_path, 6)
    (tmp_path / "rank3.json.gz").write_bytes(b"nothing")
    for executor in (None, ThreadPoolExecutor(2)):
        parts = list(fleet.mapped(kineto.read, paths, executor))
        assert [getattr(part, "number", "error") for part in parts] == [0, 1, 2, "error", 4, 5]
        assert isinstance(parts[3], UserError)


def test_dask_is_such_an_executor(tmp_path):
    distributed = pytest.importorskip("distributed")
    paths = traces(tmp_path, 5)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = list(fleet.mapped(kineto.read, paths, client.get_executor()))
    assert [part.number for part in parts] == list(range(5))
    assert len(job(parts).meets) == 1


def test_ranks_from_the_command_line(tmp_path):
    from syncscope.cli.ranks import command

    traces(tmp_path, 3)
    run = CliRunner()
    done = run.invoke(command, [str(tmp_path)], standalone_mode=False)
    assert done.exception is None, done.output
    assert "3 ranks, 1 collective" in done.output
    done = run.invoke(command, [str(tmp_path), "--format", "json"], standalone_mode=False)
    assert len(json.loads(done.output)["ranks"]) == 3
    empty = tmp_path / "empty"
    empty.mkdir()
    assert isinstance(run.invoke(command, [str(empty)], standalone_mode=False).exception, UserError)


def waiting_now_and_then():
    """Two ranks of which each waits for 2 ms in every third step, and else for next to nothing."""
    ranks = []
    for number in range(2):
        events, at = [], 0
        for n in range(8):
            waits = 2 * MS if n % 3 == 1 else 10_000
            events += [launch(at + MS, n), work("gemm", at + MS + 20_000, MS + waits, n)]
            call = Event(Kind.CALL, "clFinish", Lane(1, 1), at + 2 * MS, waits + 20_000, flags=Flag.BLOCKING)
            events += [call, replace(call, kind=Kind.READ, name="item", place=Place("train.py", 9))]
            events.append(Event(Kind.STEP, f"ProfilerStep#{n}", Lane(1, 1), at, 8 * MS + waits))
            at += 8 * MS + waits
        ranks.append(rank_of(Trace.of(events, origin_ns=10**18), number=number, name=f"rank {number}"))
    return ranks


def test_what_a_job_may_lose_is_said_in_words_and_not_as_a_number_below_0():
    found = job(waiting_now_and_then())
    assert found.saving_range[0] < 0 < found.saving
    assert "longer to" in found.verdict, found.verdict
    assert " shorter, as its steps spread" in found.verdict
    assert "-" not in found.verdict.replace("-d", "")


def test_one_rank_of_a_job_has_no_savings_of_the_job():
    """It waits for others that are not there: what goes with its waits is theirs."""
    (rank,) = ranks_of(0, reads=(0,), steps=6)
    assert job([rank]).saving is not None, "of a program of one rank"
    found = job([replace(rank, world=8)])
    assert found.saving is None
    assert [row.saved_alone for row in found.ranks] == [None]
    assert all(line.price is None for line in found.lines)
    assert "of rank 0 alone, without the 7 others, nobody can tell" in found.verdict


def test_a_kernel_that_is_called_as_a_line_is_none():
    kernel = LongerIn("before gemm:7", 2.0, 1.0)
    line = LongerIn("before train.py:7", 2.0, 1.0, "train.py:7", before=True)
    assert [job_name(one) for one in (kernel, line)] == ["before gemm:7", "before train.py:7"]
    assert [(bool(one.line), one.before, one.short) for one in (kernel, line)] == [
        (False, False, "before gemm:7"),
        (True, True, "train.py:7"),
    ]


@pytest.mark.parametrize("steps", [3, 12])
def test_a_step_of_ranks_that_never_meet_is_that_of_the_slowest_whichever_came_first(steps):
    """It was that of the rank whose program had begun later."""
    traces = [traces_of(late, steps=steps)[0] for late in (4 * MS, 0)]
    alone = [Trace.of(event for event in trace if "AllReduce" not in event.name) for trace in traces]
    apart = [replace(rank_of(trace, number=number), origin=number * 10**9) for number, trace in enumerate(alone)]
    found = job(apart)
    assert any("taken as independent" in note for note in found.notes)
    own = [row.times.step for row in found.ranks if row.times is not None]
    assert found.step == pytest.approx(max(own), rel=0.02)
    assert job([replace(rank, origin=10**9 - rank.origin) for rank in apart]).step == pytest.approx(found.step)
