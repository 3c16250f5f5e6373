"""A saving that may be none: what it may cost is said alike wherever the interval is shown, and never as 0."""

import dataclasses
import json

import pytest

from syncscope.exporters import json as as_json
from syncscope.exporters import markdown, terminal
from syncscope.exporters.html._model import further
from syncscope.model.report import Price, Report

MS = 1e6  # ns


@pytest.fixture
def doubtful(report: Report) -> Report:
    """The report, with intervals that begin below 0."""
    assert report.answer is not None
    first, *lines = report.lines
    assert first.answer is not None
    assert first.price is not None
    line = dataclasses.replace(
        first,
        answer=dataclasses.replace(first.answer, low=-0.03),
        price=dataclasses.replace(first.price, low=-0.27 * MS, high=2 * MS),
    )
    ifs = tuple(dataclasses.replace(one, low=-0.3 * MS) for one in report.what_if)
    answer = dataclasses.replace(report.answer, low=-0.02)
    return dataclasses.replace(report, lines=(line, *lines), what_if=ifs, answer=answer)


def test_in_the_terminal(doubtful):
    text = " ".join(terminal.export(doubtful).split())
    assert "likely 16 % shorter (2.0 % longer to 20 % shorter)" in text
    assert "2.00 ms (22.2 %) shorter (300 us longer to 2.50 ms shorter)" in text
    assert "-0.30 to 2.50" in text
    assert "-3 to" in text
    assert text.count("between: below 0, a step may be so much longer") == 2, "below both tables"


def test_what_nobody_can_act_on_is_said_to_be_so_with_what_is_known_all_the_same(doubtful):
    """18 % longer to 87 % shorter, and nothing of what to do."""
    answer = dataclasses.replace(doubtful.answer, low=-0.18, high=0.87, bound=0.87)
    told = " ".join(terminal.export(dataclasses.replace(doubtful, answer=answer)).split())
    counted = f"counted all the same: {doubtful.syncs:.3g} a step, most at "
    assert f"too wide to act on; go by the syncs, which are {counted}" in told
    assert "too wide" not in terminal.export(doubtful)


def test_the_hosts_own_work_at_least_is_told_from_the_lines(report):
    of_host = dataclasses.replace(report.bound, device=0.0, host=0.6 * report.bound.step, chain=0.0)
    assert "is the host's own work, once no wait, recorder or other program is in its way" in of_host.words()
    assert of_host.words().endswith("; the lines have it as it was.")


def test_where_nothing_is_below_0_nothing_is_said_of_costs(report):
    lines = tuple(dataclasses.replace(line, answer=None) for line in report.lines)
    sure = dataclasses.replace(report, lines=lines)
    text = terminal.export(sure) + markdown.export(sure)
    assert "longer" not in text


def test_in_markdown(doubtful):
    text = markdown.export(doubtful)
    assert "(2.0 % longer to 20 % shorter)" in text
    assert "| if launches cost nothing | 22.2 % | 3.33 % longer to 27.8 % shorter |" in text
    assert "| -3 to" in text


def test_in_json(doubtful):
    told = json.loads(as_json.export(doubtful))
    assert told["answer"]["low"] == -0.02
    assert told["lines"][0]["answer"]["low"] == -0.03
    assert told["lines"][0]["share_range_ms"][0] == -0.27
    assert [one["low_ms"] for one in told["what_if"]] == [-0.3, -0.3]


def test_on_the_page(doubtful, show):
    page = show(doubtful)
    rows = page.locator("ol.what-if > li").all()
    assert all("A step may be 300 us longer to " in row.inner_text() for row in rows)
    assert "180 us longer to 1.80 ms shorter" in page.inner_text("#answer .figures")
    page.click(".place >> nth=0")
    assert "(270 us longer to 1.26 ms shorter)" in page.inner_text("table.lines .price")
    assert "-3 to" in page.locator("table.lines .range").first.inner_text()


def test_a_line_that_makes_a_step_longer_is_not_said_to_save(doubtful):
    line = dataclasses.replace(doubtful.lines[0], price=Price(-0.3 * MS, -0.2 * MS, -0.25 * MS, 0.0))
    text = terminal.export(dataclasses.replace(doubtful, lines=(line, *doubtful.lines[1:])))
    assert "-0.25" in text


@pytest.mark.parametrize("off", [0.0, 0.3])
def test_why_a_range_is_wide_on_a_busy_machine_is_one_plain_sentence(report, off):
    assert report.bound is not None
    noisy = dataclasses.replace(report, bound=dataclasses.replace(report.bound, others=0.3), unexplained=off)
    assert noisy.replay_holds is not bool(off)
    told = " ".join(terminal.export(noisy).split())
    page = " ".join(further(noisy))
    also = ", and a replay gets 30.0 % of a step wrong or cannot explain it" if off else ""
    others = "other programs had the processors for 30% of the device's time"
    for text in (told, page):
        assert f"{others}{also}, so the range is wide: record again while they do not" in text
        assert f"({others}" not in text
