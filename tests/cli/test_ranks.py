"""`syncscope ranks`, as it is typed."""

import json
import re
from dataclasses import replace

import pytest
from cli.recorded import MS, late_job, moved, outcome, ranks, recording
from cli.recorded import asked as run
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.errors import UserError
from syncscope.model.trace import Kind


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
