"""`syncscope report` of several ranks: those of one job are reported as the job."""

import json
import re
from dataclasses import replace

import pytest
from cli.recorded import SOURCE, moved, outcome, ranks, recording, report
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.trace import Kind, Trace


def model(page):
    """What a page shows."""
    return json.loads(re.search(r'id="model">(.*?)</script>', page.read_text(), re.DOTALL)[1])


def test_a_folder_with_the_ranks_of_one_job_is_reported_as_the_job(folder):
    ranks(folder / "job")
    code, out, err = outcome("job")
    assert (code, err) == (0, "")
    assert out.startswith("2 ranks of one job; of one alone: syncscope report job/worker0.pt.trace.json\n")
    assert "2 ranks, 0 collectives" in out
    assert out.count("train.py:7") == 1


def test_ranks_that_are_named_or_asked_for_more_are_reported_each_alone(folder):
    ranks(folder / "job")
    for args in (("job/worker0.pt.trace.json", "job/worker1.pt.trace.json"), ("job", "--no-savings")):
        code, out, _ = outcome(*args)
        assert code == 0
        assert out.startswith("2 ranks of one job, each alone; what a line costs the job: syncscope ranks job\n")
        assert out.count("Where the host waits") == 2
    assert len(json.loads(report("job", "--format", "json").stdout)) == 2


def test_a_job_is_one_page_and_its_limits_are_those_of_the_job(folder):
    ranks(folder / "job")
    code, _, err = outcome("job", "-o", "job.html")
    assert (code, err) == (0, "wrote job.html\n")
    assert '"ranks":' in (folder / "job.html").read_text()
    code, _, err = outcome("job", "--max-syncs-per-step", "0.5")
    assert (code, err) == (
        1,
        "rank 0: 1 sync per step is more than the 0.5 allowed:\n  train.py:7: item: 1 per step of the mean rank, on 2 ranks\n",
    )
    code, _, err = outcome("job", "--max-saving", "1%")
    assert code == 1
    assert "the syncs cost the job" in err
    for args in (("--format", "json"), ("--no-savings",)):  # which tell each rank alone
        code, out, err = outcome("job", "--max-syncs-per-step", "0.5", *args)
        assert code == 1
        assert out.count("worker") >= 2
        assert "rank 0: 1 sync per step is more than the 0.5 allowed:" in err
    assert outcome("job", "--max-syncs-per-step", "5")[0] == 0


BROKEN = (
    "rank 0: 1 sync per step is more than the 0.5 allowed: train.py:7: item: 1 per step of the mean rank, on 2 ranks"
)


def told_of_limits(form, text):
    """What a document says of limits that do not hold: of what, and in which words."""
    if form == "junit":
        return re.findall(r'classname="([^"]+)">\s*<(?:failure|error) type="limit" message="([^"]+)"', text)
    if form == "sarif":
        (run,) = json.loads(text)["runs"]
        return [("", one["message"]["text"]) for one in run["results"] if one["ruleId"] == "limit"]
    if form == "gitlab":
        return [("", one["description"]) for one in json.loads(text) if one["check_name"] == "limit"]
    if form == "github":
        return [("", one) for one in re.findall(r"\(limit\)::\S+:\d+:\d+: (.*)", text)]
    return [("", one) for one in re.findall(r": limit: (.*)", text)]


FORMATS = ("github", "gitlab", "sarif", "junit", "concise")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", ["report", "ranks"])
def test_each_format_of_findings_has_the_limits_of_a_job(folder, command, form):
    """They were refused: a job of ranks had no annotations on GitHub, and no code quality report."""
    ranks(folder / "job")
    asked = [command, "job", "--max-syncs-per-step", "0.5", "--format", form]
    done = CliRunner().invoke(commands, asked, standalone_mode=False)
    assert done.return_value == 1
    assert told_of_limits(form, done.stdout) == [("job" * (form == "junit"), BROKEN)]
    held = CliRunner().invoke(commands, [*asked[:3], "5", *asked[4:]], standalone_mode=False)
    assert held.return_value == 0
    assert told_of_limits(form, held.stdout) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_folder_of_jobs_and_recordings_is_one_document(folder, form):
    """A JUnit file of two recordings was refused, so that a recipe broke with the second one."""
    ranks(folder / "runs" / "job")
    kineto.save(recording("train.py"), folder / "runs" / "alone.json")
    (folder / "train.py").write_text(SOURCE)
    asked = ("runs", "--max-syncs-per-step", "0.5", "--format", form)
    code, out, err = outcome(*asked)
    assert code == 1
    alone = "1 sync per step is more than the 0.5 allowed: train.py:7: item: 1 per step"
    of = ("runs/job: ", "runs/alone.json: ")
    if form == "junit":
        assert told_of_limits(form, out) == [("runs/job", BROKEN), ("runs/alone.json", alone)]
    else:
        assert told_of_limits(form, out) == [("", of[0] + BROKEN), ("", of[1] + alone)]
    assert (
        out.count("host-read at train.py:7" if form == "junit" else "(host-read)" if form == "github" else "host-read")
        >= 1
    )
    assert outcome(*asked, "-o", "one.file")[:2] == (1, "")
    assert (folder / "one.file").read_text().strip() == out.strip()
    assert err.splitlines()[-1] == "limits: 2 broken" or len(err.splitlines()) <= 4


def test_what_recordings_of_one_program_have_found_is_told_once(folder):
    (folder / "train.py").write_text(SOURCE)
    for name in ("a", "b"):
        kineto.save(recording("train.py"), folder / "runs" / f"{name}.json")
    found = json.loads(outcome("runs", "--format", "gitlab")[1])
    assert [one["check_name"] for one in found] == ["host-read"]
    assert len({one["fingerprint"] for one in found}) == len(found)


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_a_job_is_held_to_its_limits_in_other_formats_too(folder, form):
    ranks(folder / "job")
    code, out, err = outcome("job", "--max-syncs-per-step", "0.5", "--format", form)
    assert code == 1
    assert "rank 0: 1 sync per step is more than the 0.5 allowed:" in err
    assert out.startswith(
        "### syncscope: `job`\n\n- **broken** `--max-syncs-per-step 0.5`" if form == "markdown" else "["
    )


def test_a_limit_of_a_job_stands_beside_the_findings_of_its_ranks_in_a_folder_of_files(folder):
    ranks(folder / "job")
    code, _, _ = outcome("job", "--max-syncs-per-step", "0.5", "--format", "sarif", "-o", "out/")
    assert code == 1
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "job-job.sarif",
        "worker0.sarif",
        "worker1.sarif",
    ]
    assert told_of_limits("sarif", (folder / "out" / "job-job.sarif").read_text()) == [("", BROKEN)]


def test_what_is_said_of_many_recordings_alike_is_said_once(folder):
    whole = recording("train.py")
    for number in range(5):
        kineto.save(whole.take(whole.kind != Kind.STEP), folder / "runs" / f"{number}.json")
    code, _, err = outcome("runs", "--max-syncs-per-step", "3")
    assert code == 2
    assert err.count("cannot be judged: no step is marked") == 1
    assert "error: runs/0.json, runs/1.json, runs/2.json and 2 more: --max-syncs-per-step 3 cannot be judged" in err
    assert err.endswith("limits: 5 not judged\n")


@pytest.mark.parametrize("form", [("--format", "html"), ()], ids=["html", "nothing said"])
def test_a_folder_of_pages_has_one_of_the_job_and_an_index_that_leads_to_all(folder, form):
    """Eight pages of ranks were written, and none of the job, of which the help speaks."""
    ranks(folder / "runs" / "job")
    kineto.save(recording("other.py"), folder / "runs" / "index.json")
    code, _, err = outcome("runs", *form, "-o", "pages")
    made = ["job-job.html", "worker0.html", "worker1.html", "index-1.html", "index.html"]
    assert (code, sorted(err.split())) == (0, sorted(" ".join(f"wrote pages/{name}" for name in made).split()))
    shown = model(folder / "pages" / "index.html")["table"]
    assert sorted(shown["links"]) == sorted(made[:-1])
    assert [len(row) for row in shown["rows"]] == [len(shown["columns"])] * 4
    assert shown["rows"][0][0] == "runs/job: 2 ranks of one job"
    assert [one["number"] for one in model(folder / "pages" / shown["links"][0])["ranks"]["ranks"]] == [0, 1]
    assert model(folder / "pages" / "worker0.html")["lines"], "those of its ranks are there, too"


def test_ranks_that_are_asked_for_more_have_pages_of_their_own_alone(folder):
    ranks(folder / "job")
    assert outcome("job", "--no-savings", "--format", "html", "-o", "pages")[0] == 0
    assert sorted(path.name for path in (folder / "pages").iterdir()) == ["index.html", "worker0.html", "worker1.html"]


def test_a_job_in_a_subfolder_is_the_job_and_what_lies_beside_it_is_reported_alone(folder):
    ranks(folder / "runs" / "job")
    alone = outcome("runs")
    assert (alone[0], alone[1]) == (0, outcome("runs/job")[1])
    kineto.save(recording("other.py"), folder / "runs" / "other.json")
    code, out, err = outcome("runs")
    assert (code, err) == (0, "")
    assert out.startswith("2 ranks of one job; of one alone: syncscope report runs/job/worker0.pt.trace.json\n")
    assert out.count("2 ranks, 0 collectives") == 1
    assert out.count("Where the host waits") == 1
    code, _, err = outcome("runs", "-o", "job.html")
    assert (code, err) == (0, "wrote job.html\nnot on it: 1 other trace in runs\n")
    assert outcome("runs", "--max-syncs-per-step", "0.5")[0] == 1
    assert outcome("runs", "--max-syncs-per-step", "5")[0] == 0


@pytest.mark.parametrize("written", [("-o", "job.html"), ("-o", "job.md"), ("--format", "markdown"), ("-o", "pages/")])
def test_what_lies_beside_a_job_is_held_to_the_limits_though_it_is_not_in_the_file(folder, written):
    quiet = [e for e in recording("train.py") if e.kind not in (Kind.READ, Kind.COPY) and "Read" not in e.name]
    for rank in range(2):
        job = moved(Trace.of(quiet), rank=rank, world_size=2)
        kineto.save(job, folder / "runs" / "job" / f"{rank}.json")
    kineto.save(recording("other.py"), folder / "runs" / "other.json")
    limit = ("--max-syncs-per-step", "0.5")
    assert outcome("runs/job", *limit, *written)[0] == 0
    assert outcome("runs", *limit, *written)[0] == outcome("runs/other.json", *limit)[0] == 1
    (folder / "runs" / "other.json").write_bytes(b"{")
    assert outcome("runs", *limit, *written)[0] == 2


def test_ranks_with_a_folder_each_are_one_job(folder):
    """As `syncscope run -o runs` makes them."""
    for rank in range(2):
        ranks(folder / "runs" / f"train-rank{rank}", (rank,))
    kineto.save(recording("other.py"), folder / "runs" / "other" / "run.json")
    code, out, _ = outcome("runs")
    assert code == 0
    assert out.startswith("2 ranks of one job; of one alone: syncscope report runs/train-rank0/worker0.pt.trace.json\n")


def of_a_schedule_that_repeats(where, times=(1700000000000, 1700000060000), world=2):
    """What `tensorboard_trace_handler` writes for `schedule(..., repeat=2)`: a file of each rank for each time."""
    for number, at in enumerate(times):
        for rank in range(world):
            kept = recording("train.py", line=7 + number)
            origin = at * 1_000_000
            meta = kept.meta | {"rank": rank, "world_size": world, "origin_ns": origin}
            kineto.save(replace(kept, meta=meta), where / f"node_{100 + rank}.{at + rank}.pt.trace.json")


def test_of_a_schedule_that_repeats_the_newest_recording_of_each_rank_is_used_and_said(folder):
    of_a_schedule_that_repeats(folder / "job")
    said = "of 2 recordings of each rank in job the newest is used, as node_100.1700000060000.pt.trace.json\n"
    code, out, err = outcome("job")
    assert (code, err) == (0, said)
    assert "2 ranks, 0 collectives" in out
    assert "train.py:8" in out
    assert "train.py:7" not in out
    done = CliRunner().invoke(commands, ["ranks", "job"], standalone_mode=False)
    assert (done.return_value, done.stderr) == (0, said)
    assert "train.py:8" in done.stdout
    assert "not one job" not in done.stdout


def test_of_ranks_recorded_unequally_often_no_time_is_chosen(folder):
    of_a_schedule_that_repeats(folder / "job")
    (folder / "job" / "node_101.1700000000001.pt.trace.json").unlink()
    code, out, err = outcome("job", "--no-savings")
    assert (code, err) == (0, "")
    assert out.count("recorded") >= 3


def test_traces_that_are_not_clearly_one_job_are_reported_each_alone(folder):
    ranks(folder / "job")
    kineto.save(recording("other.py"), folder / "job" / "other.pt.trace.json")
    code, out, err = outcome("job", "--no-savings")
    assert (code, err) == (0, "")
    assert "one job" not in out
    ranks(folder / "two", (0,))
    ranks(folder / "two" / "again", (0,))
    assert "one job" not in report("two", "--no-savings").stdout
    assert "one job" not in report("two/worker0.pt.trace.json", "--no-savings").stdout


def test_one_rank_alone_promises_nothing_for_the_job(folder):
    """What it saves it may wait for the others instead: it is no `fix` where it spends much of a step with them."""
    ranks(folder / "job")
    one = "job/worker0.pt.trace.json"
    told = "one of 2 ranks: what it saves is not the job's, which may wait for the others instead"
    code, out, _ = outcome(one)
    assert code == 0
    assert told in " ".join(out.split())
    assert "`syncscope ranks FOLDER`" in out
    found = json.loads(report(one, "--format", "json").stdout)
    assert found["answer"]["decision"] == "fix", "of a rank that never exchanges"
    assert told in found["verdict"]
    code, _, err = outcome(one, "--max-saving", "1%")
    assert code == 1
    assert told in err

    alone = kineto.read(folder / one)
    meets = Trace.of(replace(e, name="ncclDevKernel_AllReduce") if e.name == "mean" else e for e in alone)
    kineto.save(replace(meets, meta=alone.meta), folder / one)
    found = json.loads(report(one, "--format", "json").stdout)
    assert found["answer"]["decision"] == "try"
    assert {line["answer"]["decision"] for line in found["lines"]} == {"try"}
    assert "is exchange with other ranks" in found["answer"]["why"]
    kineto.save(recording("train.py"), folder / "single.json")
    assert "ranks" not in report("single.json").stdout
