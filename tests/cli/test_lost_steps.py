"""Steps of which a recording lost the driver's calls and the device's work are no idle ones."""

import json
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from cli.recorded import MS, outcome
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.trace import Event, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1), Lane(0, 7, 0)
STEPS, LAUNCHES = 8, 10  # a step of 10 ms launches so often, and waits once


def training(lost: Collection[int] = (), idle: Collection[int] = (), torn: int = -1) -> Trace:
    """Steps of which the `lost` ones keep their operators alone; in the `idle` ones the program does something else on the
    processor. Of the step `torn` the second half is lost."""
    events = []
    for step in range(STEPS):
        at = 10 * step * MS
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", HOST, at, 10 * MS))
        if step in idle:
            events += [Event(Kind.OP, "aten::tokenize", HOST, at + n * MS, MS // 2) for n in range(LAUNCHES - 1)]
            continue
        for n in range(LAUNCHES):
            start, number = at + n * MS // 2, 1 + 100 * step + n
            events.append(Event(Kind.OP, "aten::mm", HOST, start, 50_000))
            if step not in lost and not (step == torn and n >= LAUNCHES // 2):
                events.append(Event(Kind.CALL, "cudaLaunchKernel", HOST, start + 10_000, 9_000, number))
                events.append(Event(Kind.KERNEL, "gemm", QUEUE, start + 30_000, MS // 4, number))
        events.append(Event(Kind.OP, "aten::item", HOST, at + 5 * MS, MS))
        if step not in lost and step != torn:
            events.append(Event(Kind.CALL, "cudaStreamSynchronize", HOST, at + 5 * MS + 10_000, MS // 2))
    return Trace.of(sorted(events, key=lambda e: (e.start, -e.duration)))


def told(trace: Trace, *limits: str) -> tuple[int, str, str]:
    kineto.save(trace, "run.json.gz")
    code, out, err = outcome("run.json.gz", *limits)
    return code, " ".join(out.split()), err


@pytest.mark.parametrize("lost", [range(4, 8), range(4), (1, 3, 5, 7)], ids=["the end", "the begin", "each second"])
def test_no_limit_holds_where_too_many_steps_lost_their_calls(folder: Path, lost: Collection[int]) -> None:
    code, out, err = told(training(lost), "--max-syncs-per-step", "5")
    assert code == 2
    assert f"in {len(lost)} of 8 steps operators ran that call the driver in others, and their calls were lost" in err
    assert "answer unknown" in out
    assert "busy" not in out, "how much of its time the device worked is not known either"


@pytest.mark.parametrize("lost", [(6, 7), (0, 1), (3,)], ids=["the end", "the begin", "within"])
def test_a_few_lost_steps_are_not_counted_which_is_said(folder: Path, lost: Collection[int]) -> None:
    whole = json.loads(outcome(saved(training()), "--format", "json")[1])
    some = json.loads(outcome(saved(training(lost)), "--format", "json")[1])
    assert [line["count"] for line in some["lines"]] == [line["count"] for line in whole["lines"]] == [1]
    assert some["device_busy"] == pytest.approx(whole["device_busy"], rel=0.05)
    code, out, _ = told(training(lost), "--max-syncs-per-step", "0")
    assert code == 1
    assert f"{len(lost)} of 8 steps lost calls that their operators make in others, and are not counted" in out


def saved(trace: Trace) -> str:
    kineto.save(trace, "one.json.gz")
    return "one.json.gz"


def test_the_step_in_which_the_loss_began_is_not_counted(folder: Path) -> None:
    _, out, _ = told(training(lost=(6, 7), torn=5))
    assert "3 of 8 steps lost calls" in out


def test_steps_that_do_something_else_on_the_processor_lost_nothing(folder: Path) -> None:
    code, out, _ = told(training(idle=range(1, 8, 2)), "--max-syncs-per-step", "5")
    assert code == 0
    assert "lost" not in out


def test_a_rank_that_lost_most_of_its_steps_lets_no_gate_of_the_job_pass(folder: Path) -> None:
    for rank, lost in enumerate(((), range(3, 8))):
        trace = training(lost)
        meta = trace.meta | {"rank": rank, "world_size": 2}
        kineto.save(replace(trace, meta=meta), folder / "job" / f"{rank}.json")
    done = CliRunner().invoke(commands, ["ranks", "job", "--max-syncs-per-step", "5"], standalone_mode=False)
    assert done.return_value == 2
    assert "job/1.json cannot be judged: in 5 of 8 steps operators ran" in done.stderr


@pytest.mark.parametrize("lost", [(1, 3, 5, 7), (0, 2, 3, 5, 6), (0, 1, 2, 4, 6, 7)])
def test_counted_steps_and_lost_ones_are_one_account(folder: Path, lost: Collection[int]) -> None:
    """Where no two whole steps follow one another, a lost one is not counted either, and the numbers add up."""
    found = json.loads(outcome(saved(training(lost)), "--format", "json")[1])
    assert found["step_ms"] == pytest.approx(10)
    _, out, _ = told(training(lost))
    counted, without, _, more = re.search(
        r"(\d) counted: without (\d) whose calls were lost(, and (\d) more)?", out
    ).groups()
    assert (int(without), int(counted) + int(without) + int(more or 0)) == (len(lost), STEPS)
    assert f"{len(lost)} of 8 steps lost calls that their operators make in others, and are not counted" in out
