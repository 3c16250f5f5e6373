"""`syncscope diff` of two jobs: rank by rank, the median rank and the worst, and which kernel got slower there."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope import kineto
from syncscope.analysis.job_comparison import compare_jobs
from syncscope.cli._diff_of_jobs import job_in
from syncscope.cli.diff import command
from syncscope.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn_ranks import traces_of
from test_work_changes import BEFORE, loop


def job(where, *takes, world=None):
    """A rank for each of these: how long its second gemm takes, ms."""
    for rank, ms in enumerate(takes):
        trace = loop(BEFORE[0], ("gemm", 4, ms), *BEFORE[2:])
        meta = trace.meta | {"rank": rank, "world_size": world or len(takes), "origin_ns": 10**18}
        kineto.save(replace(trace, meta=meta), where / f"worker{rank}.pt.trace.json")
    return str(where)


def diff(*args):
    return CliRunner(env={"COLUMNS": "100"}).invoke(command, [*args], standalone_mode=False)


@pytest.fixture
def jobs(tmp_path):
    """Four ranks; in the second job all take 0.2 ms longer, and rank 2 takes 1 ms longer."""
    return job(tmp_path / "one", 1, 1, 1, 1), job(tmp_path / "two", 1.2, 1.2, 2, 1.2)


def test_each_rank_has_a_row_and_the_worst_is_told_with_its_kernel(jobs):
    told = diff(*jobs)
    assert told.return_value == 0, told.exception
    rows = [line.split() for line in told.stdout.splitlines()]
    at = rows.index(["rank", "step", "ms", "after", "change", "idle", "ms", "after", "exposed", "ms", "after"])
    assert [row[0] for row in rows[at + 1 : at + 5]] == ["2", "0", "1", "3"]
    assert rows[at + 1][-1] == "worst"
    assert rows[at + 3][-1] == "median"
    worst = told.stdout.partition("rank 2, the worst:")[2]
    assert "slower gemm train.py:4 1 1 1.00 2.00" in " ".join(worst.split())
    assert "rank 1, the median:" in told.stdout


def test_two_jobs_as_json_and_as_markdown(jobs, tmp_path):
    found = json.loads(diff(*jobs, "--format", "json").stdout)
    assert [rank["number"] for rank in found["ranks"]] == [0, 1, 2, 3]
    assert (found["worst"], found["median"], found["only_before"], found["only_after"]) == (2, 1, [], [])
    assert found["ranks"][2]["kernels"][0] == {
        "became": "slower", "name": "gemm", "path": "train.py", "line": 4, "count": [1, 1], "ms": [1, 2],
    }  # fmt: skip
    told = diff(*jobs, "--format", "markdown", "--max-slowdown", "20%").stdout
    assert "4 ranks\n\n- held `--max-slowdown 20%`: a step is " in told
    assert "\n\n| rank | step ms | after | change |" in told
    assert "#### Rank 2, the worst" in told
    refused = diff(*jobs, "--format", "github").exception
    assert isinstance(refused, UserError)
    assert "these are two jobs" in refused.message


def test_two_jobs_as_a_page_have_a_row_for_each_rank_and_the_worst_and_the_median_in_full(jobs, tmp_path):
    told = diff(*jobs, "-o", str(tmp_path / "both.html"))
    assert (told.return_value, told.exception) == (0, None)
    model = on_page(tmp_path / "both.html")
    assert [row[0] for row in model["table"]["rows"]] == ["2", "0", "1", "3"]
    assert [one["title"] for one in model["compared"]] == ["Rank 1, the median", "Rank 2, the worst"]
    assert model["compared"][1]["comparison"]["kernels"][0]["ms"] == [1, 2]


def on_page(path):
    """What a page shows, as JSON values."""
    found = re.search(r'id="model">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


def test_a_limit_is_of_the_median_rank(jobs):
    assert diff(*jobs, "--max-slowdown", "20%").return_value == 0
    broken = diff(*jobs, "--max-slowdown", "1%")
    assert broken.return_value == 1
    assert broken.stderr.startswith("rank 1: a step is 6.")
    assert "  slower: gemm of train.py:4, 1.00 ms to 1.20 ms a step" in broken.stderr


def test_ranks_that_only_one_job_has_are_named(tmp_path):
    one, two = job(tmp_path / "one", 1, 1, 1), job(tmp_path / "two", 1, 1, world=3)
    assert "Only the first job has rank 2." in diff(one, two).stdout
    (tmp_path / "two" / "worker1.pt.trace.json").unlink()
    for told in (diff(one, two), diff(two, one)):
        assert isinstance(told.exception, UserError), "one rank alone is no job"
        assert told.exception.message == f"{two} holds rank 0 alone, and {one} 3 ranks of one job"
        assert told.exception.hint.endswith(f"{one}/worker0.pt.trace.json")


def test_many_ranks_are_compared_by_many_processes(tmp_path):
    one, two = job(tmp_path / "one", *[1] * 6), job(tmp_path / "two", *[1] * 5, 1.5)
    told = json.loads(diff(one, two, "--format", "json").stdout)
    assert (len(told["ranks"]), told["worst"]) == (6, 5)
    assert told["ranks"][0]["kernels"] == []
    assert told["ranks"][5]["kernels"][0]["ms"] == [1, pytest.approx(1.5)]


@pytest.mark.slow  # what drawn jobs differ in is asked above
def test_a_real_job_and_its_copy_differ_in_nothing(shared):
    folder = str(shared / "traces" / "multirank_dlrm8")
    found = json.loads(diff(folder, folder, "--format", "json").stdout)
    assert [rank["number"] for rank in found["ranks"]] == list(range(8))
    assert all(rank["before"] == rank["after"] and rank["kernels"] == [] for rank in found["ranks"])


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (4_000_000, "Each other rank waits 3.85 ms of a step for rank 2 in the second job, and 0.00 ms in the first"),
        (0, "No rank makes the others wait longer than in the first job"),
    ],
)
def test_it_begins_with_whom_the_others_wait_for(tmp_path, late, said):
    for where, by in (("one", 0), ("two", late)):
        (tmp_path / where).mkdir()
        for rank, trace in enumerate(traces_of(0, 0, by, 0, steps=6)):
            meta = trace.meta | {"rank": rank, "world_size": 4}
            kineto.save(replace(trace, meta=meta), tmp_path / where / f"worker{rank}.pt.trace.json")
    jobs = [str(tmp_path / where) for where in ("one", "two")]
    told = " ".join(diff(*jobs).stdout.split())
    assert told.index(said) < told.index("rank step ms")
    assert "mostly by host work" in told or not late
    assert "`syncscope ranks" in told
    found = json.loads(diff(*jobs, "--format", "json").stdout)["waited_for"]
    assert (found and (found["rank"], found["cause"])) == ((2, "host work") if late else None)


@pytest.mark.parametrize("ranks", [3, 9], ids=["in this process", "in others"])
def test_how_far_it_is_is_heard_before_the_first_rank_is_done(tmp_path, ranks):
    heard = []
    folders = [job_in(job(tmp_path / name, *[1] * ranks)) for name in ("one", "two")]
    compare_jobs(kineto.read, *(folder.traces for folder in folders), lambda *at: heard.append(at))
    assert heard[0] == (0, ranks)
    assert heard[-1] == (ranks, ranks)
    assert heard == sorted(heard)


LIMITS = (("--max-slowdown", "50%"), ("--max-new-syncs", "0"))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit[0])
@pytest.mark.parametrize("world", [3, 2], ids=["its traces name the rank", "the first job has it"])
def test_no_limit_holds_where_a_rank_is_missing_in_the_second_job(tmp_path, limit, world):
    one, two = job(tmp_path / "one", 1, 1, 1), job(tmp_path / "two", 1, 1, world=world)
    asked = diff(one, two, *limit)
    assert asked.return_value == 2
    assert f"{' '.join(limit)} cannot be judged: 2 of 3 ranks are here; missing: 2" in asked.stderr
    assert "if no more were recorded on purpose, --expect 2" in asked.stderr
    assert "<failure" not in (shown := diff(one, two, *limit, "--format", "junit")).stdout
    assert (shown.return_value, "2 of 3 ranks are here" in shown.stdout) == (2, True)
    shown = diff(one, two, *limit, "--format", "markdown")
    assert (shown.return_value, f"**not judged** `{' '.join(limit)}`" in shown.stdout) == (2, True)
    assert diff(one, two, *limit, "--format", "json").return_value == 2
    assert diff(one, two, *limit, "-o", str(tmp_path / "both.html")).return_value == 2
    assert diff(one, two).return_value == 0, "nobody asked whether anything holds"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit[0])
@pytest.mark.parametrize("world", [4, 2], ids=["its traces name the rank", "it is of another size"])
def test_no_limit_holds_where_a_rank_of_the_second_job_has_none_beside_it(tmp_path, limit, world):
    """What came in rank 2 or 3 alone was not seen, and the gate held."""
    one, two = job(tmp_path / "one", 1, 1, world=world), job(tmp_path / "two", 1, 1, 1, 1)
    asked = diff(one, two, *limit)
    assert asked.return_value == 2
    said = f"{' '.join(limit)} cannot be judged: {one} has no ranks 2, 3 to compare those of {two} with"
    assert said in asked.stderr
    assert "if that is on purpose, --expect 2" in asked.stderr
    assert diff(one, two).return_value == 0, "nobody asked whether anything holds"
    assert diff(one, two, "--max-new-syncs", "0", "--expect", "2").return_value == 0


def test_a_rank_that_both_jobs_lack_is_missing_until_it_is_said_that_none_is(tmp_path):
    one, two = (job(tmp_path / name, 1, 1, world=8) for name in ("one", "two"))
    assert diff(one, two, "--max-slowdown", "50%").return_value == 2
    assert diff(one, two, "--max-slowdown", "50%", "--expect", "2").return_value == 0
    assert diff(one, two, "--expect", "3").return_value == 2


def test_a_broken_limit_of_two_jobs_is_broken_whoever_is_missing(tmp_path):
    one, two = job(tmp_path / "one", 1, 1, 1), job(tmp_path / "two", 2, 2, world=3)
    assert diff(one, two, "--max-slowdown", "1%").return_value == 1


def test_no_limit_holds_where_a_rank_of_the_second_job_is_cut_off(jobs):
    path = Path(jobs[1], "worker1.pt.trace.json")
    path.write_text(path.read_text()[:-400])
    shown = diff(*jobs, "--max-new-syncs", "0", "--format", "junit")
    assert shown.return_value == 2
    assert "rank 1: the second recording cannot be judged: it is cut off" in shown.stdout


def test_how_many_ranks_are_expected_is_asked_of_jobs_alone(jobs):
    files = [str(Path(job, "worker0.pt.trace.json")) for job in jobs]
    refused = diff(*files, "--expect", "2").exception
    assert isinstance(refused, UserError)
    assert "these are not two jobs" in refused.message


@pytest.mark.parametrize("at", [0, 1], ids=["first", "second"])
def test_a_rank_of_which_nothing_can_be_read_is_named_whichever_job_it_is_of(jobs, at):
    path = Path(jobs[at], "worker1.pt.trace.json")
    path.write_bytes(b"")
    for expected in ((), ("--expect", "3")):
        refused = diff(*jobs, *expected).exception
        assert isinstance(refused, UserError)
        assert refused.message.startswith(f"{path} is empty")
