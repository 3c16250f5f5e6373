"""`report` of what `syncscope run --device cpu` wrote, or `trace()` where nothing but the CPU works."""

import json
from dataclasses import replace

import pytest
from cli.compared import TWICE, compared, gated
from cli.recorded import outcome
from drawn import Device

from syncscope import kineto
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace

MS = 1_000_000
SOURCE = """\
import torch

def train(model, data, device):
    total = 0.0
    for batch in data:
        loss = model(batch.to(device)).mean()
        total += loss.item()
    return total
"""


def recording(dry: bool, lines: int = 1) -> Trace:
    """Six steps on the CPU, in each of which line 7 reads a number, and as many lines behind it as are asked for."""
    host = Lane(1, 1, label="python")
    events = []
    for n in range(6):
        events.append(Event(Kind.STEP, f"ProfilerStep#{n}", host, n * MS, MS))
        if dry:
            for at in range(lines):
                place = Place("train.py", 7 + at)
                events.append(Event(Kind.READ, "item", host, n * MS + 500 + 2000 * at, 1000, place=place, column=18))
    return Trace.of(events, recorder="syncscope", **({"dry": True} if dry else {}))


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SOURCE)

    def write(dry: bool = False) -> str:
        kineto.save(recording(dry), tmp_path / "run.json.gz")
        return "run.json.gz"

    return write


def test_the_lines_that_run_has_listed_are_in_the_report_of_what_it_wrote(written):
    _, out, _ = outcome(written(dry=True))
    said = " ".join(out.split())
    assert "Where the host would wait, per step syncs train.py:7 item 1 total += loss.item()" in said
    assert "rewrite: add up on the device, read once after the loop (unsafe)" in said
    assert (
        "the lines that would wait are known, and not what that costs; record with `syncscope run --device ocl`" in said
    )
    assert "`syncscope lint --diff --all train.py` shows what they change" in said
    assert "did not wait" not in said
    (line,) = json.loads(outcome("run.json.gz", "--format", "json")[1])["lines"]
    assert (line["line"], line["op"], line["count"], line["rule"]) == (7, "item", 1.0, "host-read")


def test_of_lines_whose_cost_is_not_known_none_is_said_to_cost_nothing(written, tmp_path):
    written()
    kineto.save(recording(dry=True, lines=30), tmp_path / "run.json.gz")
    _, out, _ = outcome("run.json.gz")
    assert "and 22 more" in out
    assert "of a step" not in out
    assert out.count("train.py:") == 8


@pytest.mark.parametrize("selects", [True, False])
def test_that_the_backward_pass_of_a_mask_is_not_heard_is_said(written, selects, capsys):
    from syncscope.cli import _dry

    trace = recording(dry=True)
    names = tuple("mask_read" if selects and name == "item" else name for name in trace.names)
    _dry.tell(replace(trace, names=names), "train.py")
    said = "mask_read counts no backward pass: on CUDA that waits once more for each selection by a mask"
    err = capsys.readouterr().err
    assert (said in err) == selects
    assert "note: copies to the device are not among these" in err


def test_no_limit_is_kept_by_a_recording_that_has_no_device(written):
    code, _, err = outcome(written(dry=True), "--max-syncs-per-step", "9")
    assert code == 2
    assert "cannot be judged" in err


def test_where_only_the_cpu_works_the_report_says_how_to_have_a_device_without_a_gpu(written):
    said = " ".join(outcome(written())[1].split())
    assert (
        "all ran on the CPU; record on a GPU; without one `import syncscope.kernels` makes a device of this processor"
        in said
    )
    assert "ProfilerActivity" not in said, "which is torch.profiler's"


@pytest.mark.parametrize("options", [(), ("--format", "json"), ("--format", "markdown"), ("--format", "github")])
def test_a_recording_of_a_cpu_is_compared_with_none_in_either_order(tmp_path, options):
    device = Device().run([TWICE] * 6)[0]
    for pair in ((recording(dry=True), device), (device, recording(dry=True)), (recording(dry=True),) * 2):
        code, said = compared(tmp_path, *pair, *options)
        assert code == 2
        assert options == ("--format", "json") or "it was made on the CPU" in said
        code, err = gated(tmp_path, *pair, *options, "--max-new-syncs", "0", "--max-slowdown", "5%")
        assert code == 2
        assert "no limit can be judged" in err
