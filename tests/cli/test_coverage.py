"""What cannot be judged is never called well: recordings without a device, without calls, cut off, with work that was lost."""

import gzip
import json
import os
import re
import threading
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from cli.recorded import outcome, ranks, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.trace import DEVICE, Event, Kind, Lane, Trace

CALM = ("--max-syncs-per-step", "99")


def without(*kinds: Kind, later: bool = False) -> Trace:
    """The recording without such events; with `later`, without those of its second half."""
    trace = recording("train.py")
    gone = np.isin(trace.kind, kinds)
    if later:
        gone &= trace.start > trace.end.max() // 2
    return trace.take(~gone)


LACKING = {
    "no device": (without(*DEVICE), "no work of a device was recorded, though the driver was called"),
    "cpu": (without(*DEVICE, Kind.CALL), "all ran on the CPU, or the device was left out"),
    "no calls": (without(Kind.CALL), "no call of the driver was recorded"),
    "no kernels": (without(Kind.KERNEL), "no kernel was recorded, though 5 were launched"),
    "lost": (without(*DEVICE, later=True), "of 5 launches 2 have no work of the device, which was lost"),
}


def run(*args: str):
    return CliRunner().invoke(commands, args, standalone_mode=False)


@pytest.fixture(params=LACKING)
def lacking(folder, request):
    trace, why = LACKING[request.param]
    kineto.save(trace, folder / "bad.json")
    return "bad.json", why


def test_a_whole_recording_is_enough(folder):
    code, out, err = outcome("run.pt.trace.json.gz", *CALM)
    assert (code, err) == (0, "--max-syncs-per-step 99 holds: 1 sync per step\n")
    assert "enough for syncs and savings: 5 steps, device work, driver calls" in " ".join(out.split())


def test_a_limit_that_cannot_be_judged_is_an_error(lacking):
    path, why = lacking
    for limit in (CALM, ("--max-saving", "90%")):
        code, _, err = outcome(path, *limit)
        assert code == 2
        assert f"{path}: {' '.join(limit)} cannot be judged: " in err
        assert why in err
        assert " hint: " in err


def test_every_report_says_so_and_has_no_saving(lacking, folder):
    path, why = lacking
    code, out, _ = outcome(path)
    assert code == 0
    assert why in " ".join(out.split())
    assert "nowhere" not in out
    assert "worth fixing" not in out
    found = json.loads(run("report", path, "--format", "json").stdout)
    assert found["coverage"]["enough"] is False
    assert why in found["coverage"]["why_not"]
    assert found["answer"]["decision"] == "unknown"
    assert (found["total_saving_ms"], found["what_if"], found["fidelity"]) == (None, [], None)
    assert {read[key] for read in found["reads"] for key in ("blocked_ms", "idle_after_ms")} <= {None}
    assert {step["busy_ms"] is None for step in found["steps"]} == {found["device_busy"] is None}
    assert outcome(path, "-o", "page.html")[0] == 0
    assert why in (folder / "page.html").read_text()


def test_how_busy_is_not_said_of_work_that_was_lost(folder):
    kineto.save(LACKING["lost"][0], folder / "bad.json")
    assert json.loads(run("report", "bad.json", "--format", "json").stdout)["device_busy"] is None


def test_a_comparison_says_so_and_predicts_nothing(lacking):
    path, why = lacking
    done = run("diff", "run.pt.trace.json.gz", path)
    assert done.return_value == 2
    said = " ".join(done.stdout.split())
    assert "the second recording cannot be judged" in said
    assert why in said
    assert "came true" not in said
    found = json.loads(run("diff", path, "run.pt.trace.json.gz", "--format", "json").stdout)
    assert why in found["why_not"]
    assert (found["before"]["reads_per_step"], found["before"]["blocked_ms"]) == (None, None)
    assert (found["after"]["reads_per_step"], found["after"]["blocked_ms"] > 0) == (1, True)
    assert {found[key][0] for key in ("device_work_ms", "device_work_pieces", "launches")} == {None}
    assert {found[key] for key in ("gone", "new", "changed", "same")} == {None}


def test_a_rank_that_cannot_be_judged_is_named_and_left_out(lacking, folder):
    path, why = lacking
    ranks(folder / "job")
    (folder / path).rename(folder / "job" / "worker2.pt.trace.json")
    done = run("ranks", "job")
    assert done.return_value == 2
    assert "2 ranks" in done.stdout
    assert "worker2.pt.trace.json cannot be judged" in done.stderr
    assert why in done.stderr


def test_a_roofline_without_work_says_that_and_nothing_of_shapes(folder):
    kineto.save(LACKING["no device"][0], folder / "bad.json")
    error = run("roofline", "bad.json", "--bandwidth", "1", "--flops", "1").exception
    assert "no work of a device" in str(error)
    assert "shapes" not in str(error)


def cut(folder, share: float) -> str:
    text = gzip.decompress((folder / "run.pt.trace.json.gz").read_bytes())
    (folder / "cut.json").write_bytes(text[: int(share * len(text))])
    return "cut.json"


def test_a_recording_that_is_cut_off_cannot_be_judged(folder):
    path = cut(folder, 0.9)
    code, _, err = outcome(path, *CALM)
    assert code == 2
    assert "it is cut off before the end of its events" in err
    told = " ".join(outcome(path)[1].split())
    assert "it is cut off" in told
    assert "Not in it" not in told, "what the cut took may have had it"


def test_a_recording_whose_packed_data_is_damaged_cannot_be_judged(folder):
    """One bit of a file that was copied badly: its text may still be JSON, with another figure in it."""
    packed = bytearray((folder / "run.pt.trace.json.gz").read_bytes())
    packed[-6] ^= 1  # of the sum over all that is packed
    (folder / "flip.json.gz").write_bytes(packed)
    for limit in ((), ("--max-syncs-per-step", "99")):
        code, out, err = outcome("flip.json.gz", *limit)
        assert code == 2
        assert "holds" not in err
        assert "its gzip data is damaged" in " ".join((out + err).split())
    compared = run("diff", "run.pt.trace.json.gz", "flip.json.gz", "--max-new-syncs", "0")
    assert compared.return_value == 2
    assert "its gzip data is damaged" in compared.output
    assert json.loads(outcome("flip.json.gz", "--format", "json")[1])["coverage"]["enough"] is False


def test_how_often_a_step_waits_is_not_told_of_a_recording_that_is_cut_off(folder):
    """Of five steps the last two are gone, with what waited in them."""
    path = cut(folder, 0.6)
    told = json.loads(outcome(path, "--format", "json")[1])
    assert {line["count"] for line in (*told["lines"], *told["reads"])} == {None}
    row = next(line for line in outcome(path)[1].splitlines() if "train.py:7" in line and "item" in line)
    assert row.split()[-3:] == ["?", "?", "?"]
    markdown = outcome(path, "--format", "markdown")[1]
    assert re.search(r"train\.py:7` \| `item` \| \? \|", markdown)


def test_one_that_was_read_only_in_part_neither_also_once_it_was_saved_again(folder):
    kineto.save(kineto.read(cut(folder, 0.9)), "again.json")
    assert outcome("again.json", *CALM)[0] == 2


def test_gzip_that_ends_behind_the_whole_list_takes_nothing(folder):
    whole = (folder / "run.pt.trace.json.gz").read_bytes()
    (folder / "tail.json.gz").write_bytes(whole[:-4])  # of its checksum
    assert outcome("tail.json.gz", *CALM)[0] == 0


@pytest.mark.parametrize(
    "packed", [b"\x1f\x8b\x08garbage", gzip.compress(b"{}" * 99, mtime=0)[:11]], ids=["garbage", "cut"]
)
def test_a_packed_file_of_which_nothing_can_be_unpacked_is_not_called_empty(folder, packed):
    (folder / "bad.json.gz").write_bytes(packed)
    code, _, err = outcome("bad.json.gz")
    assert code == 2
    assert "bad.json.gz cannot be unpacked: the gzip data" in err
    assert "empty" not in err


def test_what_is_captured_into_a_graph_is_not_lost(folder):
    host, trace = Lane(1, 1, label="python"), recording("train.py")
    captured = [Event(Kind.CALL, "clEnqueueNDRangeKernel", host, 100 + n, 1, 1000 + n) for n in range(50)]
    around = [Event(Kind.CALL, f"cudaStream{how}Capture", host, at, 1) for how, at in (("Begin", 90), ("End", 200))]
    kineto.save(Trace.of([*captured, *around, *trace]), "graph.json")
    assert outcome("graph.json", *CALM)[0] == 0
    kineto.save(Trace.of([*captured, *trace]), "lost.json")
    assert outcome("lost.json", *CALM)[0] == 2


DEVTOOLS = [{"ph": "X", "cat": "devtools.timeline", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}] * 9


@pytest.mark.parametrize("text", ['{"traceEvents": []}', json.dumps(DEVTOOLS)])
def test_what_is_no_recording_of_a_program_is_an_error(folder, text):
    (folder / "other.json").write_text(text)
    code, _, err = outcome("other.json")
    assert code == 2
    assert "other.json is no recording of a program" in err


def test_it_says_what_is_missing_and_how_to_record_it(folder):
    trace = recording("train.py")
    kineto.save(replace(trace, meta={}).take(trace.kind != Kind.STEP), "plain.json")
    found = json.loads(run("report", "plain.json", "--format", "json").stdout)["coverage"]
    lacks = {one["what"]: one["how"] for one in found["lacks"]}
    assert lacks["steps"] == "end each with `prof.step()` or `trace.step()`"
    assert lacks["memory"] == "`profile_memory=True`"
    assert "lines" not in lacks


FINDINGS = ("github", "gitlab", "junit", "sarif", "concise")


@pytest.mark.parametrize("format_", FINDINGS)
def test_a_limit_is_told_in_formats_that_show_findings(lacking, format_):
    path, why = lacking
    broken = outcome("run.pt.trace.json.gz", "--max-syncs-per-step", "0.5", "--format", format_)
    assert broken[0] == 1
    assert "1 sync per step is more than the 0.5 allowed" in broken[1]
    unjudged = outcome(path, *CALM, "--format", format_)
    assert unjudged[0] == 2
    assert why in unjudged[1].replace("%2C", ",")


def test_a_limit_is_one_test_of_junit_whether_it_holds_or_not(lacking):
    def cases(path, *options):
        root = ET.fromstring(outcome(path, *options, "--format", "junit")[1])
        return {one.get("name"): [child.tag for child in one] for one in root.iter("testcase")}, root

    held, root = cases("run.pt.trace.json.gz", "--max-syncs-per-step", "5")
    assert held["max-syncs-per-step"] == ["system-out"]
    assert root.get("failures") == "0"
    broken, root = cases("run.pt.trace.json.gz", "--max-syncs-per-step", "0.5")
    assert broken["max-syncs-per-step"] == ["failure"]
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    unjudged, _ = cases(lacking[0], *CALM)
    assert ["error"] in unjudged.values()


def test_an_annotation_stands_at_the_line_that_waits_most(folder):
    _, out, _ = outcome(
        "run.pt.trace.json.gz", "--max-syncs-per-step", "0.5", "--format", "github", "--source", "project"
    )
    assert out.startswith("::error file=project/train.py,line=7,")


def test_what_stands_in_no_file_of_the_project_annotates_none(lacking):
    """A runner shows such an error with the run; at a recording, or in a library, nobody would find it."""
    for path, *limit in (("run.pt.trace.json.gz", "--max-syncs-per-step", "0.5"), (lacking[0], *CALM)):
        _, out, err = outcome(path, *limit, "--format", "github")
        assert out.startswith("::error title=syncscope (limit)::"), "the source that it names lies elsewhere"
        assert "1 finding is of the run, and annotates no file" in err


def test_every_format_names_the_folder_of_a_source_that_is_here_and_elsewhere(folder, tmp_path_factory):
    code = tmp_path_factory.mktemp("code").resolve() / "train.py"
    code.write_bytes(Path("project/train.py").read_bytes())
    text = gzip.decompress(Path("run.pt.trace.json.gz").read_bytes())
    moved = text.replace(b"/cluster/me/project/train.py", str(code).encode())
    Path("moved.pt.trace.json.gz").write_bytes(gzip.compress(moved))
    wanted = f"its source lies outside of the folder you work in: `--source {code.parent}`"
    for format_ in ("junit", "github", "concise", "sarif"):
        assert wanted in outcome("moved.pt.trace.json.gz", "--format", format_)[2]


def test_it_is_said_where_nothing_was_linted(folder):
    code, out, err = outcome("run.pt.trace.json.gz", "--format", "junit")
    assert code == 0
    assert "nothing was linted, for none of the source files that it names is here: --source DIR" in err
    assert "skipped" in out
    code, out, err = outcome("run.pt.trace.json.gz", "--format", "junit", "--source", "project")
    assert (code, err) == (0, "")
    assert "skipped" not in out


def test_no_tree_of_folders_is_made_for_a_file(folder):
    code, _, err = outcome("run.pt.trace.json.gz", "-o", "no/such/place.html")
    assert code == 2
    assert "there is no folder no/such" in err
    code, _, err = outcome("run.pt.trace.json.gz", "-o", "reprots/page.html")
    assert code == 2
    assert "there is no folder reprots" in err
    assert not os.path.exists("reprots"), "a misspelt folder is not made"
    assert not (folder / "no").exists()


def test_a_pipe_is_waited_for_with_a_word(folder):
    os.mkfifo("pipe.json")
    whole = gzip.decompress((folder / "run.pt.trace.json.gz").read_bytes())
    writer = threading.Thread(target=lambda: (folder / "pipe.json").write_bytes(whole))
    writer.start()
    code, out, err = outcome("pipe.json")
    writer.join()
    assert code == 0
    assert "train.py:7" in out
    assert err == "pipe.json is a pipe: waiting for what another program writes to it\n"


def test_of_findings_it_is_not_told_that_they_did_not_wait_where_nobody_can_know(folder, lacking):
    source = folder / "project" / "train.py"
    source.write_text(source.read_text().replace("    return total", "        print(loss.item())\n    return total"))

    def told(name):
        kept = json.loads(outcome(name, "--source", "project", "--format", "json")[1])
        return outcome(name, "--source", "project")[1], [finding["ran"] for finding in kept["findings"]]

    out, ran = told("run.pt.trace.json.gz")
    assert re.search(r"1 finding in code of each step did not wait here \(\S*train.py:8\)", " ".join(out.split()))
    assert ran == [True, False]
    out, ran = told("bad.json")
    assert "did not wait here" not in out
    assert False not in ran
