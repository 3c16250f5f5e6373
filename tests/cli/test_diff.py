import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli.compared import FIXED, STEP, TWICE, compared, on, recorded
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli.diff import command
from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.model.trace import Flag, Kind, Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device


def test_diff_tells_what_went_and_whether_it_was_foreseen(tmp_path):
    done = CliRunner().invoke(command, recorded(tmp_path), standalone_mode=False)
    assert done.exception is None, done.output
    assert "gone" in done.output
    assert "train.py:57" in done.output
    assert "the prediction is off by" in done.output


def test_diff_takes_no_folder_with_traces_of_several_ranks(tmp_path):
    """Neither a job that was recorded once, nor one with several traces of each rank: the newest is any of these."""
    one, _ = recorded(tmp_path)
    trace = kineto.read(one)
    for cycle in range(2):
        for rank in range(2):
            path = tmp_path / "job" / f"{rank}-{cycle}.json"
            kineto.save(replace(trace, meta=trace.meta | {"rank": rank, "world_size": 2}), path)
        done = CliRunner().invoke(command, [one, str(tmp_path / "job")], standalone_mode=False)
        assert isinstance(done.exception, UserError)
        said = ("holds 2 ranks of one job", "holds 4 traces, of 2 ranks")[cycle]
        assert said in done.exception.message
        assert "name one of them" in (done.exception.hint or "")


def test_diff_as_json_has_the_lines_that_went_and_how_far_the_prediction_is_off(tmp_path):
    done = CliRunner().invoke(command, [*recorded(tmp_path), "--format", "json"], standalone_mode=False)
    found = json.loads(done.output)
    assert [(line["path"], line["line"], line["op"]) for line in found["gone"]] == [("train.py", 57, "item")]
    assert abs(found["prediction_error"]) < 0.02
    assert found["after"]["step_ms"] < found["before"]["step_ms"]


def test_diff_says_what_else_was_changed_where_no_read_went(tmp_path):
    """A batch twice as large: the same reads, and nothing to predict."""
    larger = [("launch", 0, 10_000_000), *STEP[1:]]
    paths = [str(tmp_path / name) for name in ("before.json.gz", "after.json.gz")]
    for path, step in zip(paths, (STEP, larger), strict=True):
        kineto.save(Device().run([step] * 6)[0], path)
    done = CliRunner().invoke(command, paths, standalone_mode=False)
    said = " ".join(done.output.split())
    assert "no sync went. What else was changed" in said
    assert "ms of the device's work 5.00 and 10.00." in said


def test_where_the_work_is_the_same_the_parts_of_a_step_that_grew_are_named(tmp_path):
    """The host does more between two launches: the device computes for as long, and stands still for longer."""
    slower = [*STEP, ("work", 7_000_000)]
    paths = [str(tmp_path / name) for name in ("before.json.gz", "after.json.gz")]
    for path, step in zip(paths, ([*STEP, ("work", 1_000_000)], slower), strict=True):
        kineto.save(Device().run([step] * 6)[0], path)
    done = CliRunner().invoke(command, paths, standalone_mode=False)
    said = " ".join(done.output.split())
    assert (
        "The device has the same work in both. What differs of where a step goes, ms of the first and of the second: "
        in said
    )
    first, *_ = re.findall(r"second: (idle: [a-z ]+) (\d+\.\d+) and (\d+\.\d+)", said)
    assert float(first[2]) - float(first[1]) == pytest.approx(6, abs=2)
    assert "how fast the device is" not in said


def test_two_machines_are_no_change_of_a_program(tmp_path):
    before, after = (Device().run([step] * 6)[0] for step in (STEP, [STEP[0], STEP[2]]))
    code, said = compared(tmp_path, on("Tesla V100", before), on("NVIDIA A100", after))
    assert code == 0
    assert re.search(r"before\s+\S*before\.json\.gz, on Tesla V100", said)
    assert re.search(r"after\s+\S*after\.json\.gz, on NVIDIA A100", said)
    assert "Nothing is predicted: two different machines, Tesla V100 and NVIDIA A100" in said
    assert "came true" not in said
    _, said = compared(tmp_path, on("NVIDIA A100", before), on("NVIDIA A100", after))
    assert "came true" in said


def test_that_two_recordings_are_of_two_programs_is_said_before_any_figure(tmp_path, shared):
    """Also in a comment of a pull request; what is of one program ends with its sentence."""
    gan, again, policy = (
        str(shared / "answers" / f"{name}.json.gz") for name in ("gan.wait", "gan.cold", "policy.wait")
    )
    for format_ in ("terminal", "markdown"):
        told = CliRunner().invoke(command, [gan, policy, "--format", format_], standalone_mode=False).stdout
        assert told.count("These may be two programs") == 1
        assert told.index("These may be two programs") < told.index("syncs per step")
        told = CliRunner().invoke(command, [gan, again, "--format", format_], standalone_mode=False).stdout
        assert "two programs" not in told
    other = [on(name, Device().run([STEP] * 6)[0]) for name in ("A", "B")]
    _, told = compared(tmp_path, *other)
    assert told.count("two different machines, A and B") == 1
    assert told.index("two different machines") < told.index("syncs per step")


def test_a_recording_without_steps_is_not_compared_with_steps(tmp_path):
    trace = Device().run([STEP] * 6)[0]
    code, said = compared(tmp_path, trace, trace.take(trace.kind != Kind.STEP))
    assert code == 2
    assert "no step is marked in the second recording" in said
    assert "%" not in said.partition("step or recording, ms")[2].partition("steps")[0], "no change of what is not alike"


def test_of_a_folder_the_newest_recording_is_taken(tmp_path):
    before, after = map(Path, recorded(tmp_path))
    for name, file in (("one", before), ("two", after)):
        (tmp_path / name).mkdir()
        os.utime(file.rename(tmp_path / name / file.name), (1000, 1000))
    old = tmp_path / "two" / "older.json"
    old.write_bytes((tmp_path / "two" / "after.json").read_bytes())
    os.utime(old, (500, 500))
    folders = [str(tmp_path / name) for name in ("one", "two")]
    done = CliRunner().invoke(command, folders, standalone_mode=False)
    assert done.exception is None, done.output
    assert "the newest of 2 traces in " in done.stderr
    assert "after.json" in done.stderr
    assert "the prediction is off by" in done.output
    (tmp_path / "none").mkdir()
    done = CliRunner().invoke(command, [folders[0], str(tmp_path / "none")], standalone_mode=False)
    assert "holds no trace" in str(done.exception)


def test_files_of_two_folders_that_do_not_all_wait_are_known_to_be_the_same(tmp_path):
    """Waits of `losses.py` go, and one of its kind comes in `train.py`, which is in both, as launches of it are."""
    step = [("launch", 0, 5_000_000), ("read", 57, 0), ("work", 4_000_000), ("launch", 0, 1_000_000), ("read", 58, 0)]
    fixed = [step[0], step[2], step[3]]

    def in_files(trace, folder, waits):
        events = []
        for event in trace:
            if event.place:
                event = replace(event, place=Place(f"{folder}/{waits}.py", event.place.line))
            elif event.kind == Kind.CALL and event.correlation >= 0:
                event = replace(event, place=Place(f"{folder}/train.py", 30))
            events.append(event)
        return Trace.of(events)

    before = in_files(Device().run([step] * 6)[0], "proj", "losses")
    after = in_files(Device().run([[*fixed, step[-1]]] * 6)[0], "after", "train")
    code, said = compared(tmp_path, before, after)
    assert code == 0
    assert "new name" not in said
    assert "the prediction is off by" in said


def test_which_length_of_a_step_is_compared_is_said(tmp_path):
    """Steps that were timed without a recording, and of which no replay fits: a report shows them as recorded."""
    trace = Device().run([STEP] * 9)[0]
    late = {n: (n * n * 7 % 5) * 1_000_000 for n in range(len(trace))}  # for no recorded reason
    trace = Trace.of(replace(e, start=e.start + late[n]) if e.kind == Kind.KERNEL else e for n, e in enumerate(trace))
    untraced = {
        "steps": 9,
        "left_out": 0,
        "median_ns": 7_000_000,
        "low_ns": 6_000_000,
        "high_ns": 8_000_000,
        "measured": 9,
    }
    timed = replace(trace, meta=trace.meta | {"untraced": untraced, "traced": untraced})
    assert "step without a recording, ms 7.00 7.00" in compared(tmp_path, timed, timed)[1]
    assert "step without a recording" not in compared(tmp_path, trace, trace)[1]


def test_the_ending_of_the_output_says_the_format_of_a_diff(tmp_path):
    """As that of `report`: a program that asks for JSON gets no page."""
    pair = recorded(tmp_path)

    def into(name, *more):
        return CliRunner().invoke(command, [*pair, "-o", str(tmp_path / name), *more], standalone_mode=False)

    assert into("x.json").exception is None
    assert json.loads((tmp_path / "x.json").read_bytes())["gone"]
    assert into("x.html").exception is None
    assert (tmp_path / "x.html").read_bytes().startswith(b"<!doctype html>")
    assert into("x.txt", "--format", "json").exception is None
    assert json.loads((tmp_path / "x.txt").read_bytes())["gone"]
    assert into("y.json", "--format", "html").exception is None
    assert (tmp_path / "y.json").read_bytes().startswith(b"<!doctype html>")
    assert into("x.md").exception is None
    assert (tmp_path / "x.md").read_text().startswith("### syncscope: ")
    refused = into("x.csv").exception
    assert isinstance(refused, UserError)
    assert "x.csv does not say which format is wanted" in refused.message
    assert ".json" in refused.hint
    assert not (tmp_path / "x.csv").exists()


def test_two_ranks_of_a_job_are_no_before_and_after(tmp_path):
    trace = Device().run([STEP] * 6)[0]
    one, other = (replace(trace, meta={**trace.meta, "rank": rank, "world_size": 8}) for rank in (0, 1))
    assert "the two are rank 0 and rank 1 of a job" in compared(tmp_path, one, other)[1]
    assert "rank" not in compared(tmp_path, one, one)[1].partition("step")[2]


def test_which_step_is_compared_and_what_is_not_known_is_said(tmp_path):
    """The one that a replay gives; and of a recording without kernels not how long the host stood."""
    trace = Device().run([STEP] * 6)[0]
    assert "step, replayed, ms" in compared(tmp_path, trace, trace)[1]
    code, said = compared(tmp_path, trace, trace.take(trace.kind != Kind.KERNEL))
    assert code == 2
    assert re.search(r"host blocked, ms per step [\d.]+ unknown", said), said


def test_lines_of_a_copy_by_another_name_are_the_same_where_their_text_is(tmp_path, monkeypatch):
    """As people keep both: `train.py` and `train_fixed.py` beside it."""
    monkeypatch.chdir(tmp_path)
    text = [f"x{n} = {n}" for n in range(1, 81)]
    fixed = [*text[:20], *["# more"] * 3, *text[20:56], "rewritten", *text[57:]]
    for name, lines in (("train.py", text), ("train_fixed.py", fixed)):
        Path(name).write_text("\n".join(lines))
    other = [("read", 70, 0), ("launch", 0, 5_000_000)]
    before, after = (
        Device().run([step] * 6)[0] for step in ([*STEP, *other], [STEP[0], STEP[2], ("read", 73, 0), other[1]])
    )
    kept = []
    for name, trace, at in (("train.py", before, 0), ("train_fixed.py", after, 0), ("train_fixed.py", after, 1)):
        path = str(tmp_path / name)
        origin = 0 if at else Path(path).stat().st_mtime_ns + 1
        places = tuple(replace(place, path=path) for place in trace.places)
        kept.append(replace(trace, places=places, meta=trace.meta | {"origin_ns": origin}))
    found = json.loads(compared(tmp_path, *kept[:2], "--format", "json")[1])
    assert [line["line"] for line in found["gone"]] == [57]
    assert found["new"] == []
    assert [line["line"] for line in [*found["same"], *(c["after"] for c in found["changed"])]] == [73]
    assert found["predicted_ms"] is not None
    found = json.loads(compared(tmp_path, kept[0], kept[2], "--format", "json")[1])
    assert [line["line"] for line in found["gone"]] == [57, 70], "the file was changed after it was recorded"


def test_a_comment_of_a_pull_request_has_the_change_the_lines_and_the_limits(tmp_path):
    """In Markdown: how much longer a step is in ms and percent, what waits otherwise than before, which limit is broken."""
    before, after = (Device().run([step] * 6)[0] for step in (FIXED, TWICE))
    limits = ("--max-slowdown", "5%", "--max-new-syncs", "7")
    code, said = compared(tmp_path, before, after, "--format", "markdown", *limits)
    assert code == 1
    assert re.search(
        r"\*\*A step is 8\d\.\d % longer \(\d+\.\d to \d+\.\d %\): 5\.\d+ to 9\.\d+ ms, 4\.\d+ ms longer\*\*", said
    ), said
    assert "- held `--max-new-syncs 7`" in said
    assert re.search(r"- \*\*broken\*\* `--max-slowdown 5%`: a step is 8\d.\d % longer", said)
    assert " - train.py:57: item: +2 per step" in said
    assert re.search(r"\| new \| `train.py:57` \| `item` \| \| 2 \| \| 5\.\d\d \| \+5\.\d\d \|", said), said
    code, said = compared(tmp_path, after, after, "--format", "markdown")
    assert code == 0
    assert "<details><summary>2 lines wait as before</summary>" in said
    assert "**A step is not surely longer or shorter: " in said
    assert "broken" not in said
    short = Device().run([STEP] * 2)[0]
    code, said = compared(tmp_path, short, after, "--format", "markdown", "--max-slowdown", "5%")
    assert code == 2
    assert "- **not judged** `--max-slowdown 5%`: of 2 and 4 steps nobody can tell" in said


def test_a_job_on_github_annotates_the_lines_that_wait_more_often(tmp_path):
    before, after = (Device().run([step] * 6)[0] for step in (STEP, TWICE))
    code, said = compared(tmp_path, before, after, "--format", "github", "--max-new-syncs", "1")
    assert code == 1
    assert re.findall(r"::(\w+) file=train\.py,line=(\d+)", said) == [
        ("warning", "60"),
        ("warning", "57"),
        ("error", "60"),
    ]
    assert "2 syncs per step are new, more than the 1 allowed" in said
    code, said = compared(tmp_path, after, before, "--format", "github", "--max-new-syncs", "0")
    assert (code, said) == (0, "--max-new-syncs 0 holds: no sync is new")
    code, said = compared(tmp_path, before, after.take(after.kind != Kind.STEP), "--format", "github")
    assert code == 2
    assert "::error title=" in said, "a recording is no file of the project"
    assert "no step is marked in the second recording" in said


def test_copies_that_take_longer_are_no_slower_host(tmp_path):
    """The host copies what the program gave it: twice as much, in milliseconds where a launch takes microseconds."""

    def copying(copied):
        steps = [[("launch", 0, 10_000_000), ("read", 57, 0)] for _ in range(12)]
        trace = Device().run(steps)[0]
        copies = [
            replace(e, name="cudaMemcpyAsync", start=e.start - copied, duration=copied, correlation=-1)
            for e in trace
            if e.kind == Kind.CALL and not e.flags & Flag.BLOCKING and e.start > copied
        ]
        return Trace.of(sorted([*trace, *copies], key=lambda e: (e.start, -e.duration)))

    told = json.loads(compared(tmp_path, copying(200_000), copying(400_000), "--format", "json")[1])
    assert told["host_pace"] == 1.0


def test_a_recording_beside_its_copy_differs_by_nothing(tmp_path):
    """However much its steps vary: these are of 5 to 9 ms."""
    steps = [[("launch", 0, 5_000_000 + n * 4_000_000 // 5), ("read", 57, 0)] for n in range(6)]
    before, other = Device().run(steps)[0], Device().run(steps[::-1])[0]
    _, said = compared(tmp_path, before, before)
    assert "Both are one recording: the same events at the same times." in said
    assert "+0.0 to +0.0 %" in said
    assert "within noise" not in said
    assert json.loads(compared(tmp_path, before, before, "--format", "json")[1])["change_range"] == [0.0, 0.0]
    assert "one recording" not in compared(tmp_path, before, other)[1]


def test_a_wait_that_only_moved_is_said_to_have_moved(tmp_path):
    """The read of line 57 is gone, and line 58, which waited for nothing more, waits for the same work."""
    step = [("launch", 0, 5_000_000), ("read", 57, 0), ("read", 58, 0), ("work", 1_000_000)]
    before, after = (Device().run([[*step[:1], *step[at:]]] * 6)[0] for at in (1, 2))
    code, said = compared(tmp_path, before, after)
    assert code == 0
    assert "The wait of train.py:57 moved to train.py:58: the host is blocked there for about as much longer." in said
    _, plain = compared(tmp_path, before, Device().run([[step[0], step[3]]] * 6)[0])
    assert "The wait of" not in plain, "no line is blocked for longer"


@pytest.mark.slow  # the same training on a V100, without and with workers of the loader
def test_what_the_first_report_promised_of_the_loader_is_held_against_what_came(shared, tmp_path):
    """What was done takes no line out, and was buried in a sentence about where a step goes."""
    one, other = (
        kineto.read(shared / "traces" / f"v100_resnet50_train_workers{n}_6steps.pt.trace.json.gz") for n in (0, 4)
    )
    _, said = compared(tmp_path, one, other)
    assert (
        "If the loader is never late, a step was to be 59.19 ms shorter (29.59 to 74.13), as `syncscope report`" in said
    )
    assert "idle for that 0.34 ms instead of 58.88 ms, and a step is 42.91 ms shorter: that came true." in said
    known = json.loads(compared(tmp_path, one, other, "--format", "json")[1])["promised"]
    assert (known["what"], known["came_true"]) == ("the loader is never late", True)
    assert "the loader is never late" not in compared(tmp_path, other, one)[1], "nothing was done about it there"
    assert json.loads(compared(tmp_path, other, one, "--format", "json")[1])["promised"] is None


def test_recordings_that_have_nothing_in_common_are_no_success(tmp_path):
    first, second = Device().run([[("launch", 0, 1_000_000)]] * 6)[0], Device().run([[("launch", 0, 1_000_000)]] * 6)[0]
    names = tuple("another" if name.startswith("k") else name for name in second.names)
    assert compared(tmp_path, first, second)[0] == 0
    code, said = compared(tmp_path, first, replace(second, names=names))
    assert (code, "they seem to be of two programs" in said) == (2, True)


def test_recordings_of_jobs_of_another_size_promise_nothing(tmp_path):
    one, other = (Device().run([step] * 6)[0] for step in (STEP, FIXED))
    assert "that came true" in compared(tmp_path, one, other)[1]
    jobs = [replace(trace, meta={**trace.meta, "rank": 0, "world_size": n}) for trace, n in ((one, 8), (other, 128))]
    said = compared(tmp_path, *jobs)[1]
    assert "Nothing is predicted: one is of a job of 8 ranks and one of 128" in said
