"""`syncscope report`, as it is typed."""

import errno
import json
import os
import re
from pathlib import Path

import pytest
from cli.recorded import MS, READ, SOURCE, outcome, recording, report
from click.testing import CliRunner

from syncscope import kineto
from syncscope.analysis.summary import summarize
from syncscope.cli import _overview, commands
from syncscope.model.trace import Event, Kind, Lane, Trace


def test_a_table_for_people_with_the_source_that_is_here(folder):
    code, out, err = outcome("run.pt.trace.json.gz", "--source", "project")
    assert (code, err) == (0, "")
    assert "project/train.py:7  item" in out
    assert "    total += loss.item()\n" in out
    assert "5 of 10.0 ms" in out
    assert "3 counted" in " ".join(out.split())


def test_json_has_the_line_its_op_and_how_long_it_blocked(folder):
    value = json.loads(report("run.pt.trace.json.gz", "--source", "project", "--format", "json").stdout)
    (line,) = value["lines"]
    assert (line["path"], line["line"], line["op"], line["count"]) == ("project/train.py", READ, "item", 1.0)
    assert line["blocked_ms"] == pytest.approx(5.03, abs=0.01)
    assert len(value["steps"]) == 5


def test_the_line_meets_the_finding_of_the_linter(folder):
    value = json.loads(report("run.pt.trace.json.gz", "--source", "project", "--format", "json").stdout)
    assert value["lines"][0]["rule"] == "host-read"
    assert [(f["path"], f["line"], f["ran"]) for f in value["findings"]] == [("project/train.py", READ, True)]


def test_a_rewrite_is_shown_on_the_lines_as_they_are_whatever_ends_them(folder):
    source = folder / "project" / "train.py"
    source.write_bytes(b"# first\r\n" + SOURCE.replace("\n", "\r\n").encode())
    kineto.save(recording("project/train.py", READ + 1), folder / "run.json")
    (line,) = json.loads(report("run.json", "--format", "json").stdout)["lines"]
    removed = [text for text in line["fix"]["diff"].splitlines() if text[0] == "-"]
    assert removed[0] == "--- a/project/train.py"
    assert "        total += loss.item()" in [text[1:].rstrip("\r") for text in removed]


def test_without_the_source_the_line_stays_as_it_was_recorded(folder):
    value = json.loads(report("run.pt.trace.json.gz", "--format", "json").stdout)
    assert value["lines"][0]["path"] == "/cluster/me/project/train.py"
    assert value["findings"] == []


def test_a_source_folder_that_holds_nothing_of_it_is_said(folder):
    (folder / "empty").mkdir()
    assert (
        "none of the source files it names was found below empty"
        in report("run.pt.trace.json.gz", "--source", "empty").stdout
    )


def test_source_is_never_run(folder):
    (folder / "project" / "train.py").write_text("raise SystemExit('was run')\n" + SOURCE)
    assert report("run.pt.trace.json.gz", "--source", "project").exit_code == 0


def test_only_the_steps_that_are_asked_for_are_reported(folder):
    value = json.loads(report("run.pt.trace.json.gz", "--steps", "1:3", "--format", "json").stdout)
    assert [step["index"] for step in value["steps"]] == [1, 2]
    code, _, err = outcome("run.pt.trace.json.gz", "--steps", "7:")
    assert code == 2
    assert "none of the steps asked for" in err
    assert "it has the steps 0 to 4" in err


def test_the_suffix_chooses_the_format_and_the_file_is_whole_or_not_there(folder):
    assert report("run.pt.trace.json.gz", "-o", "out.json").exit_code == 0
    assert json.loads((folder / "out.json").read_text())["lines"]
    code, _, err = outcome("run.pt.trace.json.gz", "-o", "out.docx")
    assert code == 2
    assert "does not say which format" in err
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith((".", "out"))) == ["out.json"]


def test_a_place_that_cannot_be_written_is_an_error_for_the_user(folder):
    (folder / "file").write_text("")
    code, _, err = outcome("run.pt.trace.json.gz", "-o", "file/out.json")
    assert code == 2
    assert "cannot be written" in err
    assert "Traceback" not in err


def test_a_folder_for_tensorboard(folder):
    code, _, err = outcome("run.pt.trace.json.gz", "--format", "tensorboard", "-o", "logs")
    assert code == 0
    assert "tensorboard --logdir logs" in err
    assert (folder / "logs" / "plugins" / "profile" / "run").is_dir()
    assert outcome("run.pt.trace.json.gz", "--format", "tensorboard")[0] == 2
    _, _, err = outcome("run.pt.trace.json.gz", "run.pt.trace.json.gz", "--format", "tensorboard", "-o", "both")
    assert err.count("tensorboard --logdir both") == 1, "once, after all of them"


def test_a_broken_trace_does_not_hide_the_good_ones(folder):
    (folder / "broken.json").write_text("{}")
    code, out, err = outcome("broken.json", "missing.json", "run.pt.trace.json.gz")
    assert code == 2
    assert "train.py:7" in out
    assert "broken.json" in err
    assert "missing.json: no such file" in err


def test_many_files_as_one_list(folder):
    (folder / "runs").mkdir()
    for name in ("a.json", "b.json.gz"):
        kineto.save(recording(name), folder / "runs" / name)
    value = json.loads(report("runs", "--format", "json").stdout)
    assert [one["name"] for one in value] == ["runs/a.json", "runs/b.json.gz"]
    assert report("runs", "-o", "out", "--format", "json").exit_code == 0
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["a.json", "b.json"]


def test_every_trace_below_a_folder_is_read_and_other_json_is_named(folder):
    (folder / "package.json").write_text("{}")
    kineto.save(recording("b.py"), folder / "deeper" / "other.json.gz")
    (folder / "bare.json").write_text(json.dumps(bare()))
    code, out, err = outcome(".", "--format", "json")
    assert code == 0
    assert [one["name"] for one in json.loads(out)] == ["bare.json", "deeper/other.json.gz", "run.pt.trace.json.gz"]
    assert err == "not read in ., for no list of events is in it: package.json\n"


def bare() -> list[object]:
    """The events alone, as a profiler without a head writes them."""
    kineto.save(recording("c.py"), "whole.pt.json")
    events = json.loads(Path("whole.pt.json").read_text())["traceEvents"]
    Path("whole.pt.json").unlink()
    return [event for event in events if event["ph"] == "X"]


@pytest.mark.parametrize(("magic", "who"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip"), (b"\xfd7zXZ", "xz")])
def test_a_trace_that_is_packed_otherwise_is_an_error_that_says_so(folder, magic, who):
    (folder / "runs").mkdir()
    (folder / "runs" / "a.json.zst").write_bytes(magic + b"\0" * 100)
    for name in ("runs", "runs/a.json.zst"):
        code, _, err = outcome(name)
        assert code == 2
        assert f"runs/a.json.zst is packed by {who}" in err
        assert "unpack it" in err


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_pytorch_is_called_one(folder, zipped):
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.zeros(3)}, "last.pt", _use_new_zipfile_serialization=zipped)
    code, _, err = outcome("last.pt")
    assert code == 2
    assert "last.pt is a" in err
    assert "checkpoint of PyTorch's, as torch.save writes, and no recording" in err


def test_an_empty_folder_does_not_hide_the_others(folder):
    (folder / "empty").mkdir()
    code, out, err = outcome("empty", "run.pt.trace.json.gz")
    assert code == 2
    assert "empty holds no trace" in err
    assert "train.py:7" in out


def test_files_of_one_name_do_not_overwrite_each_other(folder):
    for name in ("a/run.json", "b/run.json.gz"):
        kineto.save(recording(name), folder / "runs" / name)
    assert report("runs", "-o", "out", "--format", "json").exit_code == 0
    paths = {p.name: json.loads(p.read_text())["name"] for p in (folder / "out").iterdir()}
    assert paths == {"a-run.json": "runs/a/run.json", "b-run.json": "runs/b/run.json.gz"}


def test_formats_are_found_by_name(folder):
    code, _, err = outcome("run.pt.trace.json.gz", "--format", "tensorbord", "-o", "x")
    assert code == 2
    assert "did you mean 'tensorboard'" in err


@pytest.mark.parametrize(
    "args", [("--max-saving", "much"), ("--steps", "3"), ("--steps", "a:b"), ("--source", "nowhere")]
)
def test_options_that_mean_nothing_are_refused(folder, args):
    assert report("run.pt.trace.json.gz", *args).exit_code == 2


def test_how_busy_the_device_is_is_said_of_the_steps_that_count(tmp_path):
    kept = recording("train.py")
    slow = Event(Kind.CALL, "clBuildProgram", Lane(1, 1, label="python"), -900 * MS, 890 * MS)
    first = Event(Kind.STEP, "ProfilerStep#-1", Lane(1, 1, label="python"), -900 * MS, 900 * MS)
    kineto.save(Trace.of([first, slow, *kept], **kept.meta), tmp_path / "run.pt.trace.json")
    result = CliRunner().invoke(
        commands, ["report", "--format", "json", str(tmp_path / "run.pt.trace.json")], standalone_mode=False
    )
    assert json.loads(result.output)["device_busy"] == pytest.approx(0.6, abs=0.02)  # 6 of 10 ms, not 1 of 30


def test_nobody_can_lay_a_link_where_the_report_will_be_written(folder, monkeypatch):
    monkeypatch.chdir(folder)
    Path("mine").write_text("precious")
    Path(f".out.json.{os.getpid()}").symlink_to("mine")
    assert CliRunner().invoke(commands, ["report", "run.pt.trace.json.gz", "-o", "out.json"]).exit_code == 0
    assert Path("mine").read_text() == "precious"
    assert json.loads(Path("out.json").read_text())["schema"] == 1


def test_many_recordings_do_not_become_a_folder_that_is_called_like_a_file(folder):
    for name in ("one.json", "two.json"):
        kineto.save(recording(name), folder / "runs" / name)
    code, _, err = outcome("runs", "-o", "page.html")
    assert code == 2
    assert "`--format html -o page/`" in err
    assert not (folder / "page.html").exists()


def test_a_recording_without_marks_speaks_of_no_step(folder):
    trace = recording("/cluster/me/project/train.py")
    kineto.save(trace.take(trace.kind != Kind.STEP), folder / "bare.json")
    code, out, _ = outcome("bare.json")
    said = " ".join(out.split())
    assert code == 0
    assert "none is marked, so all figures are of the whole recording" in said
    assert said.count("whole recording") == 1, "once"
    for words in ("per step", "a step", "of step"):
        assert words not in said
    value = json.loads(report("bare.json", "--format", "json").stdout)
    assert (value["step_ms"], value["step_range_ms"]) == (None, None)
    assert value["saving_step_ms"] == pytest.approx(value["uses"]["step_ms"], rel=0.05)


def test_steps_that_compile_say_how_many_more_are_wanted(folder):
    trace = recording("/cluster/me/project/train.py")
    host = Lane(1, 1, label="python")
    built = [Event(Kind.COMPILE, "clBuildProgram", host, 10 * n * MS + 8 * MS, 2 * MS + MS // 2) for n in range(5)]
    kineto.save(Trace.of([*trace, *built]), folder / "cold.json")
    code, out, _ = outcome("cold.json")
    said = " ".join(out.split())
    assert code == 0
    assert "answer unknown" in said
    assert "of the counted steps kernels were compiled" in said
    assert "let the program make 24 steps or more" in said
    assert "What would help" not in said, "no saving of what is done once"
    code, _, _ = outcome("cold.json", "--max-saving", "50%")
    assert code == 2


def test_what_is_cold_and_did_not_wait_is_no_news_for_a_pull_request(folder):
    source = folder / "project" / "train.py"
    source.write_text(SOURCE + "\n\ndef evaluate(model, batch):\n    return torch.mean(model(batch)).item()\n")
    for name in ("github", "concise"):
        said = report("run.pt.trace.json.gz", "--source", "project", "--format", name).stdout
        assert said.count("host-read") == 1, said
        assert "total += loss.item()" in said or f"{READ}" in said
    value = json.loads(report("run.pt.trace.json.gz", "--source", "project", "--format", "json").stdout)
    assert len(value["findings"]) == 2, "all of it is for programs"


def test_a_document_of_several_recordings_follows_one_another_where_the_format_can(folder):
    """A workflow that recorded twice into `runs/` and holds both to a limit."""
    wanted = ("--source", "project", "--format", "markdown", "--max-syncs-per-step", "0.5")
    code, one, _ = outcome("run.pt.trace.json.gz", *wanted)
    (folder / "more").mkdir()
    for number in (1, 2):
        (folder / "more" / f"{number}.json.gz").write_bytes((folder / "run.pt.trace.json.gz").read_bytes())
    of_both, both, _ = outcome("more", *wanted)
    assert (code, of_both) == (1, 1)
    assert f"train.py:{READ}" in one
    assert both.count("train.py") == 2 * one.count("train.py")
    assert len(both.splitlines()) == 2 * len(one.splitlines())
    code, _, err = outcome("more", "--format", "speedscope")
    assert code == 2
    assert "needs a place to write to" in err


@pytest.fixture
def closed(monkeypatch):
    """Nobody but root may do everything: what is called closed may be opened by nobody here."""

    def refusing(real):
        def asked(path, *given, **options):
            if "closed" in os.fspath(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return real(path, *given, **options)

        return asked

    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in os.fspath(path) and allowed(path, mode))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr("builtins.open", refusing(open))


@pytest.mark.parametrize("where", ["runs/closed.json", "runs/closed/a.json"])
def test_no_gate_holds_where_a_recording_of_the_folder_may_not_be_opened(folder, closed, where):
    for path in ("runs/open.json", where.replace("closed", "later")):
        kineto.save(recording("train.py"), folder / path)
    first = where.split("/")[1]
    (folder / "runs" / first.replace("closed", "later")).rename(folder / "runs" / first)
    code, out, err = outcome("runs", "--max-syncs-per-step", "100")
    assert code == 2
    assert f"runs/{where.split('/')[1]}: permission denied" in err.lower()
    assert "not read in" not in err
    assert "5 of 10.0 ms" in out


def test_a_folder_with_what_a_killed_program_left_says_how_that_is_read(folder):
    (folder / "left").mkdir()
    (folder / "left" / "syncscope-1-a.records").write_bytes(b"")
    code, _, err = outcome("left")
    assert code == 2
    assert "`syncscope report left/syncscope-1-a.records`" in err


def test_a_program_in_the_place_of_its_recording_is_told_how_that_is_made(folder):
    code, out, err = outcome("project/train.py", "run.pt.trace.json.gz")
    assert code == 2
    assert (
        "project/train.py is a program, and no recording of one\n hint: `syncscope run project/train.py` makes one"
        in err
    )
    assert "5 of 10.0 ms" in out, "and hides no other"


def test_what_the_page_says_of_a_report_in_python_is_so(folder, capsys):
    """Its example runs, its JSON is the command's, and each name of its table is one of a report."""
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    part = page[page.index("## In Python") : page.index("## A gate for CI")]
    kept = {}
    exec(part.split("```python\n")[1].split("```")[0].replace("run.json.gz", "run.pt.trace.json.gz"), kept)
    assert "train.py:7 item 1.0" in capsys.readouterr().out
    printed = json.loads(report("run.pt.trace.json.gz", "--format", "json").stdout)
    assert kept["values"] == printed | {"work": None}
    named = [
        name for row in part.splitlines() if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert len(named) > 20
    assert [name for name in named if not hasattr(kept["report"], name)] == []


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mi_vllm_decode_hipgraph", False),
        ("mi300x_sglang_qwen3_decode_hipgraph", False),
        ("h100_qwen1.5_infer_stacks", True),
    ],
)
def test_a_table_calls_no_device_idle_that_works_on_what_was_enqueued_before(shared, name, known):
    found = summarize(kineto.read(shared / "traces" / f"{name}.json.gz"))
    idle = _overview.row(found, name).cells[_overview.COLUMNS.index("idle")]
    assert idle.endswith("%") if known else idle == "-"


def test_no_advice_rests_on_the_one_step_in_which_kernels_are_loaded(shared):
    """On ROCm that is inside of the launches, which no call of another name tells."""
    said = " ".join(outcome(str(shared / "traces" / "mi250_minitoy_train.json.gz"))[1].split())
    assert "answer unknown for 70% of the counted steps kernels were compiled or loaded" in said
    assert "do first" not in said
    assert "What would help" not in said


@pytest.mark.parametrize(
    ("lengths", "told"), [((3000, 10), True), ((10, 10), False), ((3000, 10, 10, 10, 10, 10), False)]
)
def test_two_steps_of_which_the_first_does_what_is_done_once_say_how_many_are_wanted(folder, lengths, told):
    """What a program makes ready takes a step far longer than its compiler does: imports, files, memory."""
    host, queue, events, now = Lane(1, 1, label="python"), Lane(0, 7, 0), [], 0
    for n, length in enumerate(lengths):
        events.append(Event(Kind.STEP, f"ProfilerStep#{n}", host, now, length * MS))
        late = now + (length - 9) * MS
        events.append(Event(Kind.CALL, "cudaLaunchKernel", host, late, MS, correlation=2 * n + 1))
        events.append(Event(Kind.KERNEL, "k", queue, late + MS, 5 * MS, correlation=2 * n + 1))
        events.append(Event(Kind.CALL, "cudaDeviceSynchronize", host, late + 2 * MS, 4 * MS, correlation=2 * n + 2))
        now += length * MS
    events.append(Event(Kind.COMPILE, "clBuildProgram", host, MS // 2, MS // 4))
    kineto.save(Trace.of(events), folder / "short.json")
    said = " ".join(outcome("short.json")[1].split())
    assert ("let the program make 24 steps or more" in said) is told
    assert ("is what a program does once" in said) is told


def test_no_line_ends_in_blanks(folder):
    """Tables are filled up to their widths: what is piped elsewhere had 27 such lines."""
    _, out, _ = outcome("run.pt.trace.json.gz")
    assert out.splitlines()
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_a_wait_of_whoever_records_is_asked_about_and_is_no_first_advice(shared):
    """A benchmark that waits for the device before a step, where it steps the profiler: that was to be fixed first."""
    code, out, _ = outcome(str(shared / "traces" / "h100_qwen1.5_infer_stacks.json.gz"))
    said = " ".join(out.split())
    assert code == 0
    assert "do first the waits of `bool` at transformers/modeling_attn_mask_utils.py:243" in said
    assert re.search(r"2\. …\S+:34 .{0,300} does it belong to the step\? It waits where a step begins or ends", said)
    assert said.count("does it belong") == 1
    assert (
        "0.1 % of a step is left to save without the wait at moca/library/profiling/profile.py:34, if that is" in said
    )
