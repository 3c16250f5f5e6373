"""A recording of a real GPU: the lines are those that torch itself warns of; and the rules' examples wait where they say."""

import json
from pathlib import Path

import pytest
from on_cuda.conftest import Program
from rules.driver import findings

from syncscope import kineto
from syncscope.model.trace import DEVICE, Kind
from syncscope.rules import builtin, examples

HERE = Path(__file__).parent
UNTOLD = {"coalesce"}  # waits inside of a library that torch calls (thrust), of which torch does not warn


def test_every_wait_that_torch_tells_of_has_its_line(on_cuda: Program) -> None:
    done = on_cuda(HERE / "waits.py")
    assert not done.returncode, done.stderr
    assert "called a synchronizing" not in done.stderr
    said = json.loads(done.stdout)
    assert len(said["told"]) > 10
    assert sorted(map(int, said["recorded"])) == said["told"]
    assert said["lost"] == 0


def test_the_sample_says_where_it_waits(on_cuda: Program, tmp_path: Path) -> None:
    sample = ("samples/segmentation.py", "--device", "cuda", "--steps", 8, "--size", 64, "--batch", 4)
    done = on_cuda("-m", "syncscope", "run", "--whole", "-o", tmp_path, *sample)
    assert not done.returncode, done.stderr
    file = next(tmp_path.rglob("*.json.gz"))
    trace = kineto.read(file)
    lines = {e.place.line for e in trace if e.kind == Kind.READ and e.place and e.name != "to_device"}
    code = (HERE.parents[1] / "samples" / "segmentation.py").read_text().splitlines()
    written = [code.index(next(x for x in code if what in x)) + 1 for what in ("nonzero(", "unique(", "scores[chosen]")]
    assert set(written) <= lines
    assert int((trace.kind == Kind.STEP).sum()) == 8
    assert len(trace.rows(*DEVICE)) > 100
    assert trace.meta["clocks"]["CUPTI"]["uncertainty_ns"] < 50_000
    whole = on_cuda("-m", "syncscope", "report", "--all", file)  # the table of a run leaves out what costs nothing
    assert f"samples/segmentation.py:{written[0]}" in whole.stdout


def test_memory_is_as_torch_counts_it_and_has_its_lines(on_cuda: Program) -> None:
    done = on_cuda(HERE / "memory.py")
    assert not done.returncode, done.stderr
    said = json.loads(done.stdout)
    assert said["peak"] == pytest.approx(said["torch"], rel=0.01)
    assert said["made_by"] == "memory.py:32"
    assert ["memory.py:31", said["batch"]] in said["held"]


@pytest.mark.parametrize("name", sorted(n for n, rule in builtin().items() if any(e.inputs for e in examples(n, rule))))
def test_the_examples_of_a_rule_wait_where_they_are_marked(name: str, on_cuda: Program) -> None:
    """Every mark waits; every other line that waits is a finding of some rule, or goes with the fix of one."""
    done = on_cuda(HERE / "examples.py", name)
    assert not done.returncode, done.stderr
    for one in json.loads(done.stdout):
        marked = {i for i, line in enumerate(one["code"].splitlines(), 1) if line.rstrip().endswith("# !")}
        waited = set(one["waited"])
        assert one["runs"], one
        lines = one["code"].splitlines()
        assert {line for line in marked if not any(word in lines[line - 1] for word in UNTOLD)} <= waited, one
        found = findings(one["code"])
        flagged = {line for f in found for line in range(f.place.line, f.end_line + 1)}
        code = one["code"].encode()
        spans = [edit.span for f in found for edit in (f.fix.edits if f.fix is not None else ())]
        mended = {1 + code.count(b"\n", 0, at) for span in spans for at in range(span.start, span.end)}
        assert waited <= flagged | mended, one
