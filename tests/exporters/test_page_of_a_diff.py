"""The page of two recordings side by side, in a browser: it says what the terminal does."""

import re
import sys
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner
from exporters.browser import shown, watched

from syncscope import kineto
from syncscope.cli.diff import command
from syncscope.model.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device

MS = 1_000_000


def test_what_two_steps_differ_by_is_said_as_in_the_terminal(tmp_path, browser):
    """Steps of 5 to 15 ms, and the same in another order, a little longer."""
    uneven = [[("launch", 0, (5 + n * 7 % 11) * MS), ("read", 57, 0)] for n in range(9)]
    longer = [[("launch", 0, (6 + n * 5 % 11) * MS), ("read", 57, 0)] for n in range(9)]
    paths = [str(tmp_path / name) for name in ("before.json.gz", "after.json.gz")]
    for path, steps in zip(paths, (uneven, longer), strict=True):
        kineto.save(Device().run(steps)[0], path)
    printed = CliRunner().invoke(command, paths, standalone_mode=False).output
    said = re.search(r"([+-][\d.]+) to ([+-][\d.]+) %", printed)
    assert said, printed
    assert ", within noise" in printed
    done = CliRunner().invoke(command, [*paths, "-o", str(tmp_path / "both.html")], standalone_mode=False)
    assert done.exception is None, done.output
    with watched(browser) as page:
        rows = shown(page, tmp_path / "both.html").locator("#comparison tr")
        step = rows.filter(has_text=re.compile("^step")).first.inner_text()
        between = rows.filter(has_text="give or take").first.inner_text()
    ends = [float(end.replace("−", "-")) for end in re.findall(r"([+−][\d.]+) %", between)]
    assert ", within noise" in step
    assert [round(end) for end in ends] == [round(float(end)) for end in said.groups()]


def test_no_figure_is_cut_off_where_much_is_said_of_a_change(tmp_path, browser):
    """The steps of one vary, and the machine was not as fast in both: each step is longer, and that is not sure."""
    paths = [str(tmp_path / name) for name in ("before.json.gz", "after.json.gz")]
    lengths = [9_200_000, 9_200_000, 9_400_000, 9_300_000, 12_200_000, 9_000_000], [13_000_000] * 6
    for path, of, call in zip(paths, lengths, (4_000, 10_000), strict=True):
        trace = Device().run([[("launch", 0, 1_000), ("launch", 0, length), ("read", 57, 0)] for length in of])[0]
        timed = [replace(e, duration=call) if e.name == "cudaLaunchKernel" else e for e in trace]
        kineto.save(Trace.of(timed), path)
    done = CliRunner().invoke(command, [*paths, "-o", str(tmp_path / "both.html")], standalone_mode=False)
    assert done.exception is None, done.output
    with watched(browser) as page:
        page.set_viewport_size({"width": 1300, "height": 900})
        tables = shown(page, tmp_path / "both.html").locator("#comparison .pair .scroll")
        assert "every counted step longer, yet not surely" in tables.first.inner_text()
        assert tables.first.evaluate("it => it.scrollWidth - it.clientWidth") <= 0


def test_two_recordings_come_first_and_both_are_named(tmp_path, browser):
    paths = [str(tmp_path / name) for name in ("earlier.json.gz", "later.json.gz")]
    for path, ns in zip(paths, (9_000_000, 12_000_000), strict=True):
        kineto.save(Device().run([[("launch", 0, ns), ("read", 57, 0)]] * 6)[0], path)
    done = CliRunner().invoke(command, [*paths, "-o", str(tmp_path / "both.html")], standalone_mode=False)
    assert done.exception is None, done.output
    with watched(browser) as page:
        seen = shown(page, tmp_path / "both.html")
        assert seen.locator("h1").inner_text() == "earlier and later"
        assert seen.locator("main > section").first.get_attribute("id") == "comparison"
        assert "What follows is of later alone." in seen.locator("#comparison").inner_text()
