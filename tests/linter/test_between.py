"""What a report says of the host's time between two launches: which lines run there, by the source."""

import dataclasses

import pytest
from analysis.drawn import Device

import syncscope
from syncscope.exporters import terminal
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

MS, US = 1_000_000, 1_000


LIBRARY = "/usr/lib/python3/site-packages/networks/block.py"


def told(tmp_path, source: str, monkeypatch, by_library: bool = False) -> str:
    """The report of a loop whose host works for 5 ms a step before it launches at the line marked `first`, the other launch
    being at the line marked `last`; `by_library`, for these lines."""
    path = tmp_path / "train.py"
    path.write_text(source)
    monkeypatch.chdir(tmp_path)
    first, last = (
        next(n for n, line in enumerate(source.split("\n"), 1) if mark in line) for mark in ("# first", "# last")
    )
    step = [("work", 5 * MS), ("launch", 0, 100 * US), ("launch", 0, 100 * US)]
    trace = Device().run([step] * 8)[0]
    calls = iter([first, last] * 8)

    def at(line: int) -> dict[str, Place]:
        own = Place("train.py", line)
        return {"place": Place(LIBRARY, 70 + line), "caller": own} if by_library else {"place": own}

    lined = Trace.of(
        dataclasses.replace(event, **at(next(calls))) if event.kind == Kind.CALL and event.correlation >= 0 else event
        for event in trace
    )
    return " ".join(terminal.export(syncscope.report(lined)).split())


LOOP = """
it = loader()
for step in range(60):
    a = time.perf_counter()
    x, y = next(it)
    x = x.to(device)  # first
    if step % 2:
        y = prepared(y)
    loss(x, y).backward()  # last
    seen += 1
    trace.step()
"""


def test_the_line_that_feeds_a_loop_is_named_and_not_the_launch_after_it(tmp_path, monkeypatch):
    said = told(tmp_path, LOOP, monkeypatch)
    assert "if the host's own work between lines 9 and 6 of train.py is free" in said
    assert "4.9 ms between two launches, there line 5 runs, `x, y = next(it)`: do it rarely" in said
    assert "of the host's before it, most since train.py:9: there line 5 runs, `x, y = next(it)`" in said


def test_what_runs_between_launches_of_a_library_is_found_between_the_lines_that_led_there(tmp_path, monkeypatch):
    said = told(tmp_path, LOOP, monkeypatch, by_library=True)
    assert "if the host's own work between lines 79 and 76 of networks/block.py is free" in said
    assert "between two launches, there line 5 runs, `x, y = next(it)`: do it" in said


def test_between_two_launches_of_one_line_runs_what_its_loop_does_from_pass_to_pass(tmp_path, monkeypatch):
    said = told(tmp_path, "for x in loader:\n    model(x).backward()  # first # last\n", monkeypatch)
    assert "if the host's own work between two calls of train.py:2 is free" in said
    assert "between two launches, from pass to pass line 1 runs, `for x in loader`: do it" in said


@pytest.mark.parametrize(
    ("head", "body", "runs"),
    [
        ("for x in loader:", "", "line 1 runs, `for x in loader`"),
        ("for step, x in enumerate(loader):", "    x = augment(x)\n", "lines 1 and 2 run"),
        ("while (x := take()) is not None:", "", "line 1 runs, `while (x := take()) is not None`"),
        (
            "for x in range(9):",
            "    a()\n    b()\n    c()\n    d()\n",
            "4 lines with calls run, the first 2, the last 5",
        ),
    ],
)
def test_a_loops_own_head_runs_between_its_passes(tmp_path, monkeypatch, head, body, runs):
    source = f"{head}\n{body}    y = model(x)  # first\n    y.backward()  # last\n"
    assert f"4.9 ms between two launches, there {runs}" in told(tmp_path, source, monkeypatch)


@pytest.mark.parametrize(
    "source",
    [
        "def launch(x):\n    model(x)  # first\n\nfor x in loader:\n    launch(x)\n    x.backward()  # last\n",
        "for n in range(9):\n    x = n + 1\n    model(x)  # first\n    x.backward()  # last\n",
        "for x in loader\n    model(x)  # first\n    x.backward()  # last\n",
    ],
    ids=["one-calls-the-other", "nothing-is-called", "no-python"],
)
def test_where_the_source_does_not_say_what_runs_nothing_is_said(tmp_path, monkeypatch, source):
    said = told(tmp_path, source, monkeypatch)
    assert "ms between two launches: do it rarely" in said
    assert "there line" not in said


EYE = """
def loss(z):
    sim = z @ z.t()  # last
    eye = torch.eye(len(z)).to(z.device)  # first
    return sim.masked_fill(eye, 0)
"""


def test_where_no_line_runs_between_two_launches_the_second_lines_own_work_is_named(tmp_path, monkeypatch):
    said = told(tmp_path, EYE, monkeypatch)
    assert "if line 4's own work on the host, in train.py, is free" in said
    assert "4.9 ms before it launches: do it rarely, later, or elsewhere" in said


def test_the_fix_of_a_line_whose_own_work_holds_a_step_up_is_named_with_the_command_that_shows_it(
    tmp_path, monkeypatch
):
    source = "import torch\n" + EYE.replace("(z)", "(z: torch.Tensor)", 1)
    said = told(tmp_path, source, monkeypatch)
    assert "before it launches: make it on the device, as `syncscope lint --diff --all train.py` shows" in said
