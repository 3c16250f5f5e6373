"""Limits of a job of ranks: what breaks them, what nobody can judge, and how each format of CI tells of it."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from analysis.drawn_ranks import traces_of
from cli.recorded import MS, late_job, moved, ranks
from cli.recorded import asked as run

from syncscope import kineto
from syncscope.model.trace import Kind


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
