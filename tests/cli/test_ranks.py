"""`syncscope ranks`, as it is typed."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from analysis.drawn_ranks import traces_of
from cli.recorded import MS, outcome, ranks, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.errors import UserError
from syncscope.model.trace import Kind, Trace


def run(*args: str):
    return CliRunner(env={"COLUMNS": "100"}).invoke(commands, ["ranks", *args], standalone_mode=False)


def test_a_folder_or_its_files(folder):
    ranks(folder / "job")
    one = run("job")
    assert one.return_value == 0
    assert "2 ranks, 0 collectives, a step of 10.00 ms" in one.stdout
    assert "train.py:7" in one.stdout
    assert run("job/worker0.pt.trace.json", "job/worker1.pt.trace.json").stdout == one.stdout
    assert run("job/worker0.pt.trace.json").stdout.startswith("1 of 2 ranks, 0 collectives, ")


def test_tables_are_kept_and_read_again(folder):
    pytest.importorskip("pyarrow")
    ranks(folder / "job")
    kept = run("job", "--tables", "tables")
    assert kept.return_value == 0
    assert run("tables").stdout == kept.stdout
    result = CliRunner().invoke(commands, ["report", "tables"], standalone_mode=False)
    assert result.return_value == 2
    assert "its tables are for `syncscope ranks tables`" in result.stderr


def test_json_names_what_could_not_be_read(folder):
    ranks(folder / "job")
    (folder / "job" / "worker2.pt.trace.json").write_text("{}")
    result = run("job", "--format", "json")
    assert result.return_value == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert "worker2.pt.trace.json" in problem
    assert "worker2.pt.trace.json" in result.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "there is no 'nowhere'"), ("empty", "empty holds no trace"), ("bad.json", "bad.json")],
)
def test_what_the_user_can_mend(folder, name, said):
    (folder / "empty").mkdir()
    (folder / "bad.json").write_text("nonsense")
    error = run(name).exception
    assert isinstance(error, UserError)
    assert said in error.message
    assert error.hint


def test_the_ranks_of_a_real_job_are_named_shortly(shared):
    result = run(str(shared / "traces" / "multirank_dlrm8"))
    assert result.return_value == 0
    assert "8 ranks, 8 collectives" in result.stdout
    assert "  10  SendRecv_RING_SIMPLE_Sum_int8_t 2" in result.stdout
    assert re.search(
        "rank  its host is longer in .*own  (the )?others'.*\n   5  aten::slice +0.12 +0.08", result.stdout, re.DOTALL
    )
    assert max(map(len, result.stdout.splitlines())) <= 100


def moved(trace, **meta):
    return replace(trace, meta=trace.meta | meta)


STRANGERS = {
    "worlds": (moved(recording("train.py"), rank=1, world_size=8), "one of 2 ranks, .* one of 8"),
    "years": (moved(recording("train.py"), rank=1, world_size=2, origin_ns=3 * 10**18), "days lie between them"),
    "nothing said": (recording("train.py"), "is rank 0 of a job, .* says nothing of one"),
    "devices": (moved(recording("train.py"), rank=1, world_size=2, devices=[{"name": "B"}]), "is of A, .* of B"),
    "twice": (moved(recording("train.py"), rank=0, world_size=2), "rank 0 is there twice"),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_recordings_that_are_not_of_one_job_are_refused_with_the_reason(folder, who):
    stranger, why = STRANGERS[who]
    first = moved(recording("train.py"), rank=0, world_size=2, origin_ns=2 * 10**18, devices=[{"name": "A"}])
    other = moved(stranger, origin_ns=stranger.meta.get("origin_ns") or 2 * 10**18)
    for number, trace in enumerate((first, other)):
        kineto.save(trace, folder / "job" / f"{number}.json")
    error = run("job").exception
    assert isinstance(error, UserError)
    assert re.search(f"these are not the ranks of one job: .*{why}", error.message)


ANY = {"origin_ns": 2 * 10**18, "host": "here"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (moved(recording("other.py"), **ANY), "a.json ran train.py, b.json other.py"),
        (
            moved(recording("train.py"), **ANY | {"origin_ns": 2 * 10**18 + 10**9}),
            "a.json was over before b.json began",
        ),
        (moved(recording("train.py"), **ANY), ""),
        (moved(recording("train.py"), **ANY | {"origin_ns": 2 * 10**18 + 10**9, "host": "there"}), ""),
    ],
)
def test_recordings_of_two_programs_or_of_one_in_turns_are_no_job(folder, other, why):
    """Neither names a rank: two runs of one process each passed as two ranks, and halved the syncs of each."""
    kineto.save(moved(recording("train.py"), **ANY), folder / "job" / "a.json")
    kineto.save(other, folder / "job" / "b.json")
    error = run("job").exception
    assert (error is not None) == bool(why)
    if why:
        assert why in error.message


def test_a_report_of_what_only_looks_like_a_job_is_of_each(folder):
    for number, origin in enumerate((2 * 10**18, 3 * 10**18)):
        kept = moved(recording("train.py"), rank=number, world_size=2, origin_ns=origin)
        kineto.save(kept, folder / "job" / f"worker{number}.json")
    code, out, err = outcome("job")
    assert code == 0
    assert "each alone, for these are not the ranks of one job" in err
    assert out.count("Where the host waits") == 2


def test_real_recordings_that_have_nothing_in_common_are_no_job(shared, tmp_path):
    for name in ("a100_train_ddp8_rank3_60reads.json.gz", "v100_resnet50_train_workers0_6steps.pt.trace.json.gz"):
        (tmp_path / name).symlink_to(shared / "traces" / name)
    error = run(str(tmp_path)).exception
    assert isinstance(error, UserError)
    assert "says nothing of one" in error.message


def test_what_a_rank_is_blocked_for_is_of_a_step_as_in_its_own_report(folder):
    ranks(folder / "job")
    (rank,) = json.loads(run("job/worker0.pt.trace.json", "--format", "json").stdout)["ranks"]
    own = CliRunner().invoke(
        commands, ["report", "job/worker0.pt.trace.json", "--format", "json"], standalone_mode=False
    )
    told = json.loads(own.stdout)
    assert rank["blocked"] / 1e6 == pytest.approx(sum(line["blocked_ms"] for line in told["lines"]))
    assert rank["blocked"] / 1e6 < told["step_ms"]
    assert rank["symptom"] <= rank["blocked"]


def test_the_ending_of_the_output_says_the_format_of_a_job(folder):
    ranks(folder / "job")
    assert run("job", "-o", "x.json").return_value == 0
    assert len(json.loads((folder / "x.json").read_bytes())["ranks"]) == 2
    assert run("job", "-o", "y.txt", "--format", "json").return_value == 0
    assert len(json.loads((folder / "y.txt").read_bytes())["ranks"]) == 2
    assert run("job", "-o", "x.html").return_value == 0
    assert (folder / "x.html").read_bytes().startswith(b"<!doctype html>")
    refused = run("job", "-o", "x.csv").exception
    assert isinstance(refused, UserError)
    assert "x.csv does not say which format is wanted" in refused.message
    assert not (folder / "x.csv").exists()


def test_a_gate_of_a_job_names_the_rank_that_has_too_many_syncs(folder):
    ranks(folder / "job")
    done = run("job", "--max-syncs-per-step", "0.5", "--max-saving", "90%")
    assert done.return_value == 1
    assert done.stderr == (
        "rank 0: 1 sync per step is more than the 0.5 allowed:\n"
        "  train.py:7: item: 1 per step of the mean rank, on 2 ranks\n"
        "--max-saving 90% holds: the syncs cost the job 40.0 % of a step (40.0 to 40.0 %)\n"
    )
    assert run("job", "--max-syncs-per-step", "1").return_value == 0


def test_a_gate_of_a_job_limits_what_its_syncs_cost(folder):
    ranks(folder / "job")
    done = run("job", "--max-saving", "1%")
    assert done.return_value == 1
    assert re.match(
        r"the syncs cost the job \d+\.\d % of a step \(.* %\), more than the 1 % allowed:\n  train.py:7: item: \d",
        done.stderr,
    )
    (folder / "job" / "worker1.pt.trace.json").unlink()
    done = run("job", "--max-saving", "1%")
    assert done.return_value == 2, "one rank alone tells nothing of the job"
    assert "--max-saving 1% cannot be judged: 1 of 2 ranks is here; missing: 1" in done.stderr


def test_a_gate_of_a_job_names_the_rank_for_which_the_others_wait(folder):
    late_job(folder, (0, 2 * MS))
    done = run("job", "--max-wait-for-rank", "15%")
    assert done.return_value == 1
    assert re.match(r"the other ranks wait 20\.\d % of a step for rank 1, more than the 15 % allowed", done.stderr), (
        done.stderr
    )
    assert run("job", "--max-wait-for-rank", "25%").return_value == 0


def test_of_a_step_or_three_nobody_can_tell_whether_the_others_always_wait_so_long(folder):
    late_job(folder, (0, 2 * MS))
    few = run("job", "--steps", "1:4", "--max-wait-for-rank", "15%")
    assert few.return_value == 2
    assert re.search(
        r"cannot be judged: the other ranks wait 20\.\d % of a step for rank 1, the most, and how far", few.stderr
    )
    assert run("job", "--steps", "1:4", "--max-wait-for-rank", "25%").return_value == 0


def test_a_gate_of_a_job_does_not_pass_waits_in_collectives_that_are_not_matched(folder):
    late_job(folder, (0, MS))
    assert run("job", "--max-wait-for-rank", "15%").return_value == 0
    path = folder / "job" / "1.json"
    trace = kineto.read(path)
    collectives = [row for row in trace.rows(Kind.KERNEL) if "AllReduce" in trace[row].name]
    trace.start[collectives[2:3]] += 4 * MS
    kineto.save(trace, path)
    asked = run("job", "--max-wait-for-rank", "15%")
    assert asked.return_value == 2, asked.stdout
    assert "were not found on all ranks: in their kernels the ranks may wait" in asked.stderr


def test_the_job_is_told_what_it_gains_if_the_last_rank_is_on_time(folder):
    """Here all hosts wait for their own time, and no work for a collective."""
    late_job(folder, (0, MS, 3 * MS))
    told = run("job").stdout
    assert "Rank 2 comes last to 5 of 5 collectives" in " ".join(told.split())
    assert "Had it come" not in told
    ranks = {rank["number"]: rank for rank in json.loads(run("job", "--format", "json").stdout)["ranks"]}
    assert [ranks[number]["on_time"] for number in range(3)] == [None, None, 0]


def test_without_marked_steps_all_is_said_to_be_of_the_whole_recording(folder):
    late_job(folder, (0, 2 * MS))
    assert "no step is marked" not in run("job").stdout
    for path in (folder / "job").iterdir():
        trace = kineto.read(path)
        kineto.save(trace.take(trace.kind != Kind.STEP), path)
    told = run("job").stdout
    assert "no step is marked: all figures are of the whole recording" in told
    assert "the whole recording of " in told.splitlines()[0]
    assert "per step" not in told
    assert "a step" not in told
    assert "-1" not in told
    assert json.loads(run("job", "--format", "json").stdout)["marked"] is False


def test_of_ranks_that_come_at_one_moment_none_comes_last(folder):
    late_job(folder, (0, 0, 0))
    told = run("job").stdout
    assert "times" not in told
    assert "comes last to" not in told


def late_job(folder, lates):
    """Each rank comes to its collective so many ns after the first one, in each step of 10 ms."""
    for rank, late in enumerate(lates):
        events = [
            e if e.kind is not Kind.COPY else
            replace(e, kind=Kind.KERNEL, name="ncclDevKernel_AllReduce", start=e.start + late, duration=3 * MS - late, bytes=-1)
            for e in recording("train.py")
        ]  # fmt: skip
        kineto.save(moved(Trace.of(events), rank=rank, world_size=len(lates)), folder / "job" / f"{rank}.json")


def test_a_gate_of_a_job_does_not_pass_what_it_cannot_judge(folder):
    ranks(folder / "job")
    done = run("job", "--max-wait-for-rank", "20%")
    assert done.return_value == 2
    assert "--max-wait-for-rank 20% cannot be judged: no collective was found" in done.stderr
    for path in (folder / "job").iterdir():
        trace = kineto.read(path)
        kineto.save(trace.take(trace.kind != Kind.STEP), path)
    for option in ("--max-syncs-per-step", "--max-wait-for-rank"):
        done = run("job", option, "1")
        assert done.return_value == 2
        assert "no step is marked" in done.stderr


def test_a_limit_of_a_job_that_is_broken_outranks_one_that_nobody_can_judge(folder):
    ranks(folder / "job")
    done = run("job", "--max-syncs-per-step", "0.5", "--max-wait-for-rank", "20%")
    assert done.return_value == 1
    assert "more than the 0.5 allowed" in done.stderr
    assert "--max-wait-for-rank 20% cannot be judged" in done.stderr


@pytest.mark.parametrize("limit", ["--max-syncs-per-step", "--max-saving", "--max-wait-for-rank"])
def test_no_limit_holds_for_a_job_of_which_a_rank_is_missing(folder, limit):
    ranks(folder / "job", (0, 2), 3)
    told = run("job")
    assert told.return_value == 0, "nobody asked whether anything holds"
    assert told.stdout.startswith("2 of 3 ranks, 0 collectives")
    assert "\n1 of 3 ranks is missing (rank 1): who waited for it" in told.stdout
    assert json.loads(run("job", "--format", "json").stdout)["missing"] == [1]
    asked = run("job", limit, "100")
    assert asked.return_value == 2
    assert "2 of 3 ranks are here; missing: 1" in asked.stderr
    assert "--expect 2" in asked.stderr


def test_a_broken_limit_is_broken_whoever_is_missing(folder):
    ranks(folder / "job", (0, 2), 3)
    assert run("job", "--max-syncs-per-step", "0").return_value == 1


def test_as_many_ranks_as_expected_are_enough_and_fewer_are_not(folder):
    ranks(folder / "job", (0, 2), 3)
    assert run("job", "--max-syncs-per-step", "5", "--expect", "2").return_value == 0
    for limit in ((), ("--max-syncs-per-step", "5")):
        asked = run("job", *limit, "--expect", "4")
        assert asked.return_value == 2
        assert "2 of 4 ranks are here" in asked.stderr


def test_an_empty_file_of_a_rank_lets_no_gate_pass(folder):
    ranks(folder / "job", (0, 1), 2)
    (folder / "job" / "worker1.pt.trace.json").rename(folder / "job" / "rank-1.json")
    assert run("job", "--max-syncs-per-step", "5").return_value == 0
    (folder / "job" / "rank-1.json").write_text("")
    asked = run("job", "--max-syncs-per-step", "5")
    assert asked.return_value == 2
    assert "rank-1.json" in asked.stderr


def test_a_clock_that_is_set_otherwise_is_told(folder):
    late_job(folder, (0, 0, 0))
    assert "clock" not in run("job").stdout
    path = folder / "job" / "2.json"
    trace = kineto.read(path)
    kineto.save(replace(trace, meta=trace.meta | {"origin_ns": trace.meta.get("origin_ns", 0) + 3_000 * MS}), path)
    told = " ".join(run("job").stdout.split())
    assert (
        "the clock of rank 2 is 3.00 s ahead of that of rank 0; all are set by the ends of common collectives" in told
    )


def test_where_a_step_of_each_rank_goes_stands_first(folder):
    late_job(folder, (0, 2 * MS))
    told = run("job").stdout.splitlines()
    first = next(n for n, line in enumerate(told) if line.startswith("rank"))
    assert told[first].split()[:2] == ["rank", "step"]
    found = json.loads(run("job", "--format", "json").stdout)["ranks"]
    for rank in found:
        times = rank["times"]
        assert times["busy"] + times["idle"] == pytest.approx(times["step"])
        assert times["compute"] + times["copy"] + times["exposed"] == pytest.approx(times["busy"])
        own = json.loads(report_of(rank["name"]))["uses"]["parts"]
        assert {part["use"]: part["ms"] for part in own}["collective"] == pytest.approx(times["exposed"] / 1e6)
        assert sum(part["ms"] for part in own if part["idle"]) == pytest.approx(times["idle"] / 1e6)


def report_of(name):
    return CliRunner().invoke(commands, ["report", f"job/{name}", "--format", "json"], standalone_mode=False).stdout


def test_a_job_as_markdown_has_its_limits_and_the_tables_of_the_terminal(folder):
    late_job(folder, (0, 2 * MS))
    told = run("job", "--format", "markdown", "--max-wait-for-rank", "1%", "--max-syncs-per-step", "5")
    assert told.return_value == 1
    assert told.stdout.startswith(
        "### syncscope: `job`\n\n- held `--max-syncs-per-step 5`: 1 sync per step on rank 0, which has the most\n"
        "- **broken** `--max-wait-for-rank 1%`"
    )
    assert "| rank | step | busy | compute | of it overlapped |" in told.stdout
    assert "| line | op | syncs | blocked | alone | last | share |" in told.stdout
    assert run("job", "-o", "job.md").return_value == 0
    assert (folder / "job.md").read_text().startswith("### syncscope: `job`")


def test_a_job_as_junit_has_a_case_for_each_limit(folder):
    late_job(folder, (0, 2 * MS))
    told = run("job", "--format", "junit", "--max-wait-for-rank", "1%", "--max-syncs-per-step", "5")
    assert told.return_value == 1
    assert (
        '<testcase name="max-syncs-per-step" classname="job">\n      <system-out>1 sync per step on rank 0'
        in told.stdout
    )
    assert re.search(
        '<testcase name="max-wait-for-rank" classname="job">\\s*<failure type="limit" message="the other', told.stdout
    )


def test_a_server_of_tests_counts_what_cannot_be_judged_and_has_what_a_limit_found(folder):
    late_job(folder, (0, 0, 2 * MS))
    judged = ("--max-wait-for-rank", "50%", "--max-syncs-per-step", "5", "--max-saving", "2%")
    told = ET.fromstring(run("job", "--steps", "1:4", "--format", "junit", *judged).stdout.encode())
    assert [case.get("name") for case in told.iter("testcase")] == [
        "max-syncs-per-step",
        "max-saving",
        "max-wait-for-rank",
    ], "nothing was linted"
    assert (told.get("tests"), told.get("failures"), told.get("errors")) == ("3", "0", "1")
    assert "wait 20.0 % of a step for rank 2, the most" in told.find(".//*[@name='max-wait-for-rank']/system-out").text


@pytest.mark.parametrize(
    ("late", "limit", "said"),
    [
        (
            (1, 1, 1, 1, 2, 2, 2, 2, 2),
            "1%",
            "error title=syncscope (limit)::job/node2/trace.json:1:1: the other ranks wait",
        ),
        (
            (6, 1, 1, 1, 1, 1, 1, 1, 1),
            "50%",
            "notice title=syncscope (limit)::job/node2/trace.json:1:1: the other ranks",
        ),
    ],
)
def test_a_limit_of_one_rank_is_told_at_its_recording_with_what_it_does_not_count(folder, late, limit, said):
    """A late start is not counted: the limit holds, and that is told."""
    slow = traces_of(MS, MS, lambda step: MS * late[step], steps=9, begins={2: 5 * MS * (late[0] > 1)})
    for rank, trace in enumerate(slow):
        kineto.save(moved(trace, rank=rank, world_size=3), folder / "job" / f"node{rank}" / "trace.json")
    told = run("job", "--format", "github", "--max-wait-for-rank", limit)
    assert told.stdout.startswith(f"::{said}")
    assert ("does not count a late start" in told.stdout) == (told.return_value == 0)


@pytest.mark.parametrize("form", ["junit", "gitlab", "sarif", "github"])
def test_a_document_of_a_job_names_the_rank_that_cannot_be_read(folder, form):
    ranks(folder / "job")
    (folder / "job" / "worker2.pt.trace.json").write_text("{}")
    told = run("job", "--format", form)
    assert told.return_value == 2
    assert "worker2.pt.trace.json has no list of traceEvents" in told.stdout


def test_a_job_of_some_of_its_steps_and_with_every_rank(folder):
    late_job(folder, (0, 0, MS) * 5)
    assert "15 ranks, 5 collectives" in run("job").stdout
    assert "and 3 more ranks" in run("job").stdout
    assert "more ranks" not in run("job", "--all").stdout
    assert "15 ranks, 2 collectives" in run("job", "--steps", "2:4").stdout
    none = run("job", "--steps", "90:").exception
    assert isinstance(none, UserError)
    assert "none of the steps asked for" in none.message
