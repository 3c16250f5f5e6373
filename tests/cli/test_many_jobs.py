"""`syncscope ranks` and `report` of a folder in which several jobs lie: a row for each."""

import json
import re

from cli.recorded import MS, outcome, ranks, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands


def asked(*args):
    done = CliRunner(env={"COLUMNS": "120"}).invoke(commands, ["ranks", *args], standalone_mode=False)
    return done.return_value, done.stdout, done.stderr


def two_jobs(folder):
    """One in a folder, and one whose ranks have a folder for each node."""
    ranks(folder / "runs" / "one")
    for node in range(2):
        ranks(folder / "runs" / "two" / f"node{node}", (2 * node, 2 * node + 1), world=4)


def test_each_job_is_told_and_has_a_row(folder):
    two_jobs(folder)
    code, out, err = asked("runs")
    assert (code, err) == (0, "")
    assert out.count(" ranks of one job; of one alone: ") == 2
    rows = [line.split()[:3] for line in out.splitlines() if line.startswith("runs/")]
    assert rows == [["runs/one", "2", "10.00"], ["runs/two", "4", "10.00"]]
    assert outcome("runs")[1].count("4 ranks of one job") == 1


def test_of_more_than_three_there_is_the_table_alone(folder):
    for name in "abcd":
        ranks(folder / "runs" / name)
    code, out, _ = asked("runs")
    assert code == 0
    assert "ranks of one job" not in out
    assert [line.split()[0] for line in out.splitlines() if re.match(r"runs/. ", line)] == [f"runs/{n}" for n in "abcd"]
    assert "syncscope ranks runs/a; each of them: --all" in out
    assert asked("runs", "--all")[1].count("2 ranks of one job") == 4


def test_several_jobs_as_json_a_page_markdown_and_tests(folder):
    two_jobs(folder)
    found = json.loads(asked("runs", "--format", "json")[1])
    assert [(job["name"], len(job["ranks"]), job["step"]) for job in found["jobs"]] == [
        ("runs/one", 2, 10 * MS),
        ("runs/two", 4, 10 * MS),
    ]
    assert found["jobs"][0] == {"name": "runs/one"} | json.loads(asked("runs/one", "--format", "json")[1])
    for ask in (asked, outcome):
        assert ask("runs", "-o", "jobs.html")[0] == 0
        model = json.loads(re.search(r'id="model">(.*?)</script>', (folder / "jobs.html").read_text(), re.DOTALL)[1])
        assert [row[:2] for row in model["table"]["rows"]] == [["runs/one", "2"], ["runs/two", "4"]]
        assert [(job["title"], len(job["ranks"]["ranks"])) for job in model["jobs"]] == [
            ("runs/one", 2),
            ("runs/two", 4),
        ]
    told = asked("runs", "--format", "markdown")[1]
    assert told.startswith("| job | ranks | step ms |")
    assert told.count("### syncscope: `runs/") == 2
    tests = asked("runs", "--format", "junit", "--max-syncs-per-step", "5")[1]
    assert re.findall(r'testcase name="max-syncs-per-step" classname="(\S+)"', tests) == ["runs/one", "runs/two"]


def test_limits_are_of_each_job_and_name_it(folder):
    two_jobs(folder)
    code, _, err = asked("runs", "--max-syncs-per-step", "0.5")
    assert code == 1
    assert re.findall(r"^(runs/\w+): rank 0: 1 sync per step is more than the 0.5 allowed:", err, re.MULTILINE) == [
        "runs/one",
        "runs/two",
    ]
    assert asked("runs", "--max-syncs-per-step", "5")[0] == 0


def test_what_is_no_job_lies_beside_and_tables_are_of_one(folder):
    two_jobs(folder)
    kineto.save(recording("other.py"), folder / "runs" / "other.json")
    code, out, err = asked("runs")
    assert (code, err) == (0, "not told: 1 trace beside them that is of no job\n")
    assert out.count("ranks of one job") == 2
    refused = CliRunner().invoke(commands, ["ranks", "runs", "--tables", "kept"], standalone_mode=False).exception
    assert "tables are of one job, and here are 2" in refused.message


def test_nodes_of_one_job_are_no_several_jobs_where_a_rank_is_missing(folder):
    for node in range(3):
        ranks(folder / "job" / f"node{node}", (2 * node, 2 * node + 1), world=6)
    (folder / "job" / "node2" / "worker5.pt.trace.json").write_text("")
    code, out, _ = asked("job", "--max-syncs-per-step", "5")
    assert code == 2
    assert "5 of 6 ranks" in out


def test_the_json_of_each_rank_says_what_tells_the_job(folder):
    ranks(folder / "job")
    code, out, err = outcome("job", "--format", "json")
    assert (code, len(json.loads(out))) == (0, 2)
    assert err.endswith("what a line costs the job: syncscope ranks job --format json\n")
