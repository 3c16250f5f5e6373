"""`syncscope report` of many recordings: a table for people, a list for programs, files whose names tell them apart."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli.recorded import outcome, recording

from syncscope import kineto
from syncscope.cli import _progress
from syncscope.cli import report as report_command
from syncscope.model.trace import Kind


@pytest.fixture
def many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five recordings: of two ranks of a job, of two programs, and one that nobody can judge."""
    monkeypatch.setenv("COLUMNS", "80")
    runs = folder / "runs"
    whole = recording("train.py")
    kineto.save(replace(whole, meta=whole.meta | {"rank": 1, "world_size": 2}), runs / "job" / "rank1.json.gz")
    kineto.save(whole.take(whole.kind != Kind.READ), runs / "quiet.pt.trace.json.gz")
    kineto.save(whole.take(whole.kind == Kind.STEP), runs / "torn.json.gz")
    for name in ("a", "b"):
        kineto.save(whole, runs / name / "run.json.gz")
    return folder


def rows(out: str) -> dict[str, list[str]]:
    """The rows of the table by the recording, in words."""
    table = out[f"\n{out}".rindex("\nrecording  ") :].splitlines()
    return {words[0]: words[1:] for line in table[: table.index("")] if (words := line.split())}


def test_many_are_a_table_with_a_row_each(many: Path) -> None:
    code, out, _ = outcome("runs")
    assert code == 0
    found = rows(out)
    assert found["recording"][:4] == ["rank", "step", "ms", "syncs"]
    assert list(found)[1:] == ["a/run", "b/run", "job/rank1", "quiet", "torn"]
    assert found["a/run"][:3] == ["-", "10.00", "1"]
    assert found["a/run"][-2:] == ["train.py:7", "item"]
    assert found["job/rank1"][0] == "1"
    assert found["torn"][-1] != "nowhere", "a recording that nobody can judge has no verdict"
    assert "unknown" in found["torn"]
    assert out.count("Where the host waits") == 0
    assert "one of them: syncscope report runs/a/run.json.gz; each of them: --all" in out


def test_a_name_that_does_not_fit_is_that_of_the_folder_of_its_own(many: Path) -> None:
    for name in ("finetune_lm/vm_2.1795931760163", "digits/vm_5.1795931871028", "digits/vm_7.1795931885203"):
        kineto.save(recording("train.py"), many / "runs" / f"{name}.pt.trace.json.gz")
    found = [name for name in rows(outcome("runs")[1]) if name != "recording"]
    assert "finetune_lm" in found
    assert "a/run" in found
    assert len(found) == len(set(found)) == 8
    assert "digits/2026-11-29T05-57-51Z" in found, "of two in one folder each is called by its time"


@pytest.mark.parametrize(
    ("apart", "told"),
    [
        pytest.param([{"rank": n, "world_size": 2} for n in (0, 1)], ["rank0", "rank1"], id="ranks"),
        pytest.param([{}, {}], ["process10", "process11"], id="processes of one second"),
    ],
)
def test_what_a_profiler_named_is_called_by_what_people_know(
    folder: Path, apart: list[dict[str, int]], told: list[str]
) -> None:
    """`vm_10.1764600000000000000` says nothing to who made it."""
    for n, meta in enumerate(apart):
        trace = recording("train.py")
        named = replace(trace, meta=trace.meta | meta)
        kineto.save(named, folder / "runs" / "train" / f"vm_{10 + n}.17646000000000000{n}0.pt.trace.json")
    code, out, err = outcome("runs", "-o", "pages/")
    assert code == 0
    assert list(rows(out)) == ["recording", *told]
    assert {path.name for path in Path("pages").iterdir()} >= {f"train-{name}.html" for name in told}, err
    for n, meta in enumerate(apart):
        page = Path("pages", f"train-{told[n]}.html").read_text()
        assert f"<title>{f'train, rank {n}' if meta else 'train'}</title>" in page


def test_all_prints_each_of_them_above_the_table(many: Path) -> None:
    _, out, _ = outcome("runs", "--all")
    assert out.count("Where the host waits") >= 3
    assert out.rindex("Where the host waits") < out.index("\nrecording  ")
    _, out, _ = outcome("runs/a/run.json.gz", "runs/b/run.json.gz")
    assert out.count("Where the host waits") == 2, "a few are seen whole unasked"
    assert list(rows(out)) == ["recording", "a/run", "b/run"]
    assert "\nrecording  " not in outcome("runs/a/run.json.gz")[1]


def test_one_file_holds_the_list_that_is_printed(many: Path) -> None:
    _, printed, _ = outcome("runs", "--format", "json")
    code, out, err = outcome("runs", "-o", "all.json")
    assert (code, out) == (0, "")
    assert "wrote all.json" in err
    written = json.loads(Path("all.json").read_text())
    assert [one["name"] for one in written] == [one["name"] for one in json.loads(printed)]
    assert outcome("runs", "-o", "all.md")[0] == 0
    assert Path("all.md").read_text().count("### syncscope: ") == 5
    code, _, err = outcome("runs", "-o", "all.html")
    assert code == 2
    assert "5 recordings do not go into one file, all.html" in err


def test_a_name_without_a_suffix_is_a_folder_of_pages_for_many_and_no_format_for_one(many: Path) -> None:
    for name in ("pages", "more/"):
        assert outcome("runs", "-o", name)[0] == 0
        assert {path.name for path in Path(name).iterdir()} >= {"a-run.html", "index.html"}
    assert outcome("runs/a/run.json.gz", "-o", "pages")[0] == 0, "into a folder that is there"
    assert Path("pages", "run.html").exists()
    code, _, err = outcome("runs/a/run.json.gz", "-o", "one")
    assert (code, "one does not say which format is wanted" in err) == (2, True)


def test_files_of_one_name_are_told_apart_by_their_folders_and_the_table_is_shown(many: Path) -> None:
    code, out, _ = outcome("runs", "--format", "markdown", "-o", "two.d/")
    assert code == 0
    names = {path.name for path in Path("two.d").iterdir()}
    assert names == {"a-run.md", "b-run.md", "rank1.md", "quiet.md", "torn.md"}
    assert "runs/a/run.json.gz" in Path("two.d", "a-run.md").read_text().replace("\\", "")
    assert len(rows(out)) == 6


def test_a_recording_that_cannot_be_read_hides_none_of_the_others_and_is_not_hidden(many: Path) -> None:
    Path("runs/broken.json").write_text('{"traceEvents": [')
    Path("runs/text.pt.trace.json").write_text("no recording")
    code, out, err = outcome("runs", "-o", "all.json")
    assert code == 2
    assert "runs/broken.json" in err
    told = {one["name"]: one["coverage"]["why_not"] for one in json.loads(Path("all.json").read_text())}
    assert len(told) == 7
    assert told["runs/text.pt.trace.json"]
    assert told["runs/a/run.json.gz"] is None
    code, out, _ = outcome("runs", "--max-syncs-per-step", "0.5")
    assert code == 1, "a limit that is surely broken outranks a file that cannot be read"
    assert outcome("runs", "--max-syncs-per-step", "99")[0] == 2, "what cannot be judged is no pass"
    assert len(found := rows(out)) == 8
    assert found["text"][:5] == ["-", "-", "-", "unknown", "-"]
    for name in ("a/run", "b/run", "job/rank1", "quiet.pt.trace"):
        Path(f"runs/{name}.json.gz").write_bytes(b"\x1f\x8b broken")
    code, out, _ = outcome(*sorted(map(str, Path("runs").rglob("*.gz"))))
    assert code == 2
    assert {name: words[:4] == ["-", "-", "-", "unknown"] for name, words in rows(out).items()} == {
        "recording": False, "a/run": True, "b/run": True, "job/rank1": True, "quiet": True, "torn": False
    }  # fmt: skip


@pytest.mark.parametrize("form", ["junit", "sarif", "gitlab", "github"])
def test_a_document_names_the_recording_that_cannot_be_read(many: Path, form: str) -> None:
    Path("runs/text.pt.trace.json").write_text("no recording")
    code, out, _ = outcome("runs", "--max-syncs-per-step", "99", "--format", form)
    assert code == 2
    assert "runs/text.pt.trace.json" in out
    assert "is no recording" in out or "no list of" in out or "cannot be read" in out or "not JSON" in out, out


def test_the_table_of_pages_has_all_that_the_table_of_the_terminal_has(many: Path) -> None:
    Path("runs/text.pt.trace.json").write_text("no recording")
    whole = recording("train.py")
    kineto.save(whole.take(whole.kind != Kind.STEP), many / "runs" / "unmarked.json.gz")
    assert outcome("runs", "--format", "html", "-o", "pages")[0] == 2
    page = Path("pages/index.html").read_text()
    shown = json.loads(re.search(r'id="model">(.*?)</script>', page, re.DOTALL)[1])
    table = shown["table"]
    assert [one["name"] for one in table["columns"]][:3] == ["recording", "rank", "step ms"]
    cells = {row[0]: row[1:] for row in table["rows"]}
    assert cells["job/rank1"][0] == "1"
    assert cells["unmarked"][1].endswith("*")
    assert "*: no step is marked in it, so it is the whole recording" in shown["notes"]
    links = dict(zip(cells, table["links"], strict=True))
    assert links["text"] == ""
    assert links["quiet"] == "quiet.html"


def test_the_table_says_how_much_is_to_be_had_where_no_wait_is_worth_fixing(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording that never waits is left, and may be wasteful all the same."""
    monkeypatch.setenv("COLUMNS", "140")
    _, out, _ = outcome("runs")
    assert "  do first  " in out
    assert "do first: what the report of one says to do first, and what of a step that saves" in " ".join(out.split())
    _, out, _ = outcome("runs/quiet.pt.trace.json.gz")
    assert "No wait is worth fixing: the host never waits" in " ".join(out.split()) or "worth fixing" not in out
    assert "Nothing here is worth fixing" not in out


def test_a_recording_without_a_wait_has_an_answer_too(many: Path) -> None:
    whole = recording("train.py")
    work = [name in ("mean", "clEnqueueNDRangeKernel") or name.startswith("ProfilerStep") for name in whole.names]
    kineto.save(whole.take(np.array(work)[whole.name]), many / "still.json.gz")
    _, out, _ = outcome("still.json.gz")
    assert "answer leave the host waits for its device nowhere: no wait is worth fixing" in " ".join(out.split())


DAMAGED = {
    "empty": b"",
    "cut": b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A1',
    "random": bytes(range(256)) * 8,
    "zeros": bytes(4096),
    "a page of errors": b"<html>503 Service Unavailable</html>",
}


@pytest.mark.parametrize("name", ["rank-1.json", "rank-1.json.gz"])
@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("limit", [("--max-syncs-per-step", "100"), ()], ids=["gate", "no limit"])
def test_a_gate_over_a_folder_passes_no_recording_by_that_is_damaged(
    many: Path, name: str, content: bytes, limit
) -> None:
    kineto.save(recording("train.py"), many / "two" / "rank-0.json.gz")
    assert outcome("two", *limit)[0] == 0
    Path("two", name).write_bytes(content)
    code, _, err = outcome("two", *limit)
    assert code == 2
    assert f"two/{name}" in err


def test_a_packed_recording_of_which_the_end_is_missing_before_its_events_is_damaged(many: Path) -> None:
    kineto.save(recording("train.py"), many / "two" / "rank-0.json.gz")
    Path("two", "rank-1.json.gz").write_bytes(Path("two", "rank-0.json.gz").read_bytes()[:40])
    assert outcome("two", "--max-syncs-per-step", "100")[0] == 2


def test_other_json_in_the_folder_breaks_no_gate(many: Path) -> None:
    kineto.save(recording("train.py"), many / "two" / "rank-0.json.gz")
    assert outcome("two/rank-0.json.gz", "-o", "two/report.json")[0] == 0
    Path("two", "package.json").write_text('{"name": "train"}')
    Path("two", "tsconfig.json").write_text('{\n  // of the editor\n  "strict": true,\n}')
    Path("two", "log.json").write_text('{"loss": 1}\n{"loss": 0.5}\n')
    code, _, err = outcome("two", "--max-syncs-per-step", "100")
    assert code == 0
    assert "not read in two, for no list of events is in it: log.json, package.json, report.json and 1 more" in err


@pytest.mark.parametrize(
    "names",
    [
        ["a100_alexnet_cuda_sync_events", "a100_alexnet_simple_cuda_sync_events", "a100_event_sync_cuda_sync_events"],
        [f"resnet_of_the_whole_team_on_node_{n}_with_all_that_there_is_to_record" for n in range(4)],
        [f"{n}_a_run_of_the_nightly_benchmark_of_the_whole_team" for n in range(4)],
        [f"a_run_of_the_nightly_benchmark_of_the_whole_team_{n}" for n in range(4)],
    ],
    ids=["in the middle of the begin", "between two long parts", "first", "last"],
)
def test_a_name_that_is_longer_than_its_column_is_read_whole(
    many: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for name in names:
        kineto.save(recording("train.py"), many / "long" / f"{name}.json.gz")
    lines = outcome("long")[1].splitlines()
    assert set(names) <= set(lines), "whole, above its figures"
    table = lines[max(n for n, line in enumerate(lines) if line.startswith("recording  ")) :]
    figures = [line for line in table if line.startswith("  ") and "train.py:7" in line]
    assert len(figures) == len(names)
    assert len({line.index("train.py:7") for line in figures}) == 1, "in columns"


def test_a_whole_recording_is_no_step_and_all_are_in_one_unit(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    whole = recording("train.py")
    kineto.save(whole.take(whole.kind != Kind.STEP), many / "runs" / "unmarked.json.gz")
    found = rows(out := outcome("runs")[1])
    assert found["unmarked"][1].endswith("*")
    own = json.loads(outcome("runs/unmarked.json.gz", "--format", "json")[1])
    assert float(found["unmarked"][1].rstrip("*")) == pytest.approx(own["saving_step_ms"], abs=0.01), (
        "as its report says"
    )
    assert found["a/run"][1] == "10.00"
    assert "*: no step is marked in it, so it is the whole recording" in " ".join(out.split())
    assert "*" not in outcome("runs/a")[1]


def test_what_to_do_first_is_named(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    said = {line.split()[0]: line for line in outcome("runs")[1].splitlines() if line}
    assert re.search(r"  (waits|launches|host work) \d+ %  ", said["a/run"])
    assert "  -  " in said["torn"], "of which nothing is known"


def test_a_recording_that_is_cut_off_is_shown_and_is_no_success(many: Path) -> None:
    """What came before the end is reported, and the exit code says that the file was not read whole, with limits or without."""
    whole = Path("runs/a/run.json.gz").read_bytes()
    text = gzip.decompress(whole)
    Path("cut.json").write_bytes(text[: len(text) * 3 // 4])
    for limit in ((), ("--max-syncs-per-step", "99")):
        code, out, err = outcome("cut.json", *limit)
        assert code == 2
        assert "Where the host waits" in out or "not enough to judge" in " ".join(out.split())
        assert err.count("cut off before the end of its events") == 1
    assert outcome("runs/a/run.json.gz")[0] == 0


@pytest.mark.parametrize("name", ["junit", "sarif", "concise", "github", "gitlab"])
def test_a_recording_that_is_cut_off_is_an_error_in_the_document_too(many: Path, name: str) -> None:
    """A server reads the document, and not the exit code."""
    text = gzip.decompress(Path("runs/a/run.json.gz").read_bytes())
    Path("cut.json").write_bytes(text[: len(text) * 3 // 4])
    for given in (("cut.json",), ("cut.json", "runs/a/run.json.gz")):
        code, out, _ = outcome(*given, "--format", name)
        assert (code, out.count("cut.json is cut off before the end of its events")) == (2, 1)
    assert "is cut off" not in outcome("runs/a/run.json.gz", "--format", name)[1]


def test_a_recording_of_which_the_beginning_is_missing_is_shown_and_is_no_success(many: Path) -> None:
    text = gzip.decompress(Path("runs/a/run.json.gz").read_bytes())
    at = text.index(b'"traceEvents"')
    Path("tail.json").write_bytes(b"{" + text[at // 2 :])
    code, out, err = outcome("tail.json")
    assert code == 2
    assert "has not all that stands before its events" in err
    assert "recorded" in out


def test_a_recording_that_was_packed_twice_is_said_to_be(many: Path) -> None:
    path = Path("runs/a/run.json.gz")
    path.write_bytes(gzip.compress(path.read_bytes()))
    code, _, err = outcome(str(path))
    assert (code, "is packed by gzip twice" in err, "gunzip" in err) == (2, True, True)


def test_a_recording_that_is_called_as_a_word_of_what_is_said_is_named_beside_it(folder: Path) -> None:
    """`step` stands in "--max-syncs-per-step": of the two it was taken for the one that is named already."""
    whole = recording("train.py")
    for name in ("step", "quiet"):
        kineto.save(whole.take(whole.kind != Kind.STEP), folder / name)
    for form in ("terminal", "junit"):
        code, out, err = outcome("step", "quiet", "--max-syncs-per-step", "3", "--format", form)
        assert code == 2
        assert "step, quiet: --max-syncs-per-step 3 cannot be judged" in err, out
    (folder / "step").write_text("[]")
    _, out, err = outcome("step", "quiet", "--format", "concise")
    assert out.count("step is no recording of a program") == 1
    assert "step: step" not in out + err


def test_the_last_line_of_a_log_says_that_all_were_read(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "23 of 29 recordings" as the last line reads as if six had been left out."""
    monkeypatch.setattr(_progress, "SELDOM", 0.0)
    monkeypatch.setattr(report_command, "MANY", 1)
    _, _, err = outcome("runs", "--format", "json", "-o", "all.json")
    logged = [line for line in err.splitlines() if line.startswith("report: ")]
    assert logged[-1] == "report: 5 of 5 recordings"
    assert len(logged) > 1
    assert "report: " not in outcome("runs/a/run.json.gz", "--format", "json", "-o", "one.json")[2]
