"""The page, as a real browser shows it where one is installed."""

import dataclasses
import json
import re

import pytest
from exporters.browser import drawn, selected, watched

from syncscope.exporters import _figures as figures
from syncscope.exporters import html
from syncscope.exporters import json as as_json
from syncscope.model.answer import Decision
from syncscope.model.finding import Finding
from syncscope.model.report import Line, Price, Report
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Kind, Lane, Trace

BAD = "</script><img src=x onerror=alert(1)>\"'&lt;`${1}`{{MODEL}}"


def test_the_page_needs_nothing_from_outside_and_may_run_nothing_else(report):
    page = html.export(report)
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", page)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


def test_text_of_the_recording_cannot_become_part_of_the_page(report, show):
    line = Line(BAD, Place(BAD, 1), 1, 1.0, 0.0, rule=BAD, module=BAD)
    host, queue = Lane(1, 1, label=BAD), Lane(1, 7, 0, BAD)
    events = [
        Event(Kind.STEP, f"{BAD}#1", host, 0, 100),
        Event(Kind.OP, BAD, host, 0, 90),
        Event(Kind.KERNEL, BAD, queue, 50, 90),
    ]
    bad = dataclasses.replace(
        report, lines=(line,), name=BAD, notes=(BAD,), verdict=BAD, trace=Trace.of(events), plan=(0,)
    )
    text = html.export(bad)
    assert "<img" not in text
    page = show(bad)
    assert page.locator("img").count() == 0
    assert BAD.replace("`", "") in page.inner_text("#notes")
    page.click(".place")
    page.fill("#timeline input[type=search]", "onerror")
    assert "2 found" in page.inner_text("#timeline .hits")
    page.keyboard.press("Enter")
    assert selected(page) == BAD
    assert BAD in page.inner_text("#timeline .card h3")


def test_every_figure_is_that_of_the_json_report(report, show):
    page, told = show(report), json.loads(as_json.export(report))
    rows = page.locator("table.lines > tbody > tr").all()
    assert len(rows) == len(told["lines"])
    for row, line in zip(rows, told["lines"], strict=True):
        cells = [cell.inner_text().split("\n")[0].strip() for cell in row.locator("td:not(.what)").all()]
        keys = ("blocked_ms", "idle_after_ms", "saved_alone_ms", "saved_last_ms", "share_ms")
        wanted = ["-" if line[key] is None else figures.fixed(line[key]) for key in keys]
        of = None if line["share_ms"] is None else line["share_ms"] / told["step_ms"]
        assert cells == [figures.three(line["count"]), *wanted, figures.percent(of)]
    parts = told["uses"]["parts"]
    for one in (part for part in parts if part["ms"]):
        item = page.locator(".parts > li", has_text=one["words"]).first.inner_text()
        assert figures.time(1e6 * one["ms"]) in item
        assert figures.percent(one["ms"] / told["uses"]["step_ms"]) in item
    assert told["uses"]["words"] in page.inner_text("#uses")
    answer = page.inner_text("#answer")
    for figure in (
        figures.time(1e6 * told["step_ms"]),
        figures.percent(told["device_busy"]),
        figures.time(1e6 * told["total_saving_ms"]),
    ):
        assert figure in answer
    for line in told["work"]["kernels"]:
        row = page.locator("#work tr", has=page.locator(f"td[title='{line['name']}']")).first.inner_text()
        assert figures.three(line["count"]) in row
        assert figures.fixed(line["ms"]) in row
    assert all(said.replace("`", "") in answer for said in (report.lead, report.further))
    for note in told["notes"]:
        assert note in page.inner_text("#notes")


def test_figures_are_written_as_in_the_terminal(show):
    page = show(Report())
    values = [
        0,
        0.004,
        0.005,
        0.049,
        1,
        9.994,
        9.996,
        99.94,
        99.96,
        873,
        4_210,
        999_499,
        31.5e6,
        1e9,
        12e9,
        123456789012.0,
    ]
    script = f"{html.bundle('dom.js')} const {{time, three, fixed, percent}} = module_dom;"
    each = "values.map(value => [time(value), three(value), fixed(value), percent(value)])"
    found = page.evaluate(f"values => {{ {script} return {each}; }}", values)
    assert found == [[figures.time(v), figures.three(v), figures.fixed(v), figures.percent(v)] for v in values]


def test_a_line_opens_with_its_source_its_price_and_its_rewrite(report, show):
    page = show(report)
    page.click("text=First: train.py:5")
    opened = page.locator("tr.more")
    assert opened.count() == 1
    text = opened.inner_text()
    assert "background = torch.nonzero(target == 9, as_tuple=True)" in text
    assert "+    target = torch.where(target == 9, -1, target)" in page.inner_text(".diff")
    gutter = [cell.inner_text() for cell in page.locator(".source tr .gutter").all()]
    assert [cell for cell in gutter if cell] == ["1.10 ms", "200 us"]
    assert page.locator(".source tr.here .number").inner_text() == "5"
    link = page.locator("a.editor").get_attribute("href")
    assert link.startswith("vscode://file/")
    assert link.endswith("/train.py:5")
    page.select_option(".lines select, #lines select", "pycharm")
    assert page.locator("a.editor").get_attribute("href").startswith("pycharm://open?file=/")
    page.click(".place >> nth=0")
    assert page.locator("tr.more").count() == 0


def test_a_line_that_waits_in_several_ways_has_each_as_the_terminal_has(report, show):
    """One row had the sum of both, and the word of the first."""
    first = report.lines[0]
    other = dataclasses.replace(first, op="item", answer=dataclasses.replace(report.answer, decision=Decision.LEAVE))
    page = show(dataclasses.replace(report, lines=(dataclasses.replace(first, answer=report.answer), other)))
    page.click(".place >> nth=0")
    said = page.locator("tr.more .ways li").all_inner_texts()
    assert [one.split(":")[0].split() for one in said] == [["fix", first.op], ["leave", "item"]]
    assert all("1.10 ms of a step" in one for one in said)


def test_a_planned_line_that_is_left_by_itself_says_when_it_is_to_be_fixed(report, show):
    left = dataclasses.replace(report.lines[1], answer=dataclasses.replace(report.answer, decision=Decision.LEAVE))
    lines = (dataclasses.replace(report.lines[0], answer=report.answer), left)
    said = "by itself; fix it once those before it are gone"
    assert said in show(dataclasses.replace(report, lines=lines, plan=(0, 1))).inner_text("#lines")
    assert said not in show(dataclasses.replace(report, lines=lines, plan=(0,))).inner_text("#lines")


def test_waits_without_a_line_are_numbered_in_the_order_in_which_to_fix_them(report, show):
    """They have one place, nowhere: the module tells them apart, and the plan has the number of each."""
    lines = tuple(dataclasses.replace(report.lines[0], place=None, module=module, op="item") for module in "abc")
    page = show(dataclasses.replace(report, lines=lines, plan=(2, 0, 1), groups=()))
    rows = page.locator("#lines td.what div:first-child:has(.turn)").all_inner_texts()
    assert sorted("".join(row.split()) for row in rows) == ["fix1.incitem", "fix2.inaitem", "fix3.inbitem"]
    assert "irst: item in c" in page.inner_text("#answer")


def test_lines_are_sorted_and_filtered(report, show):
    page = show(report)
    names = lambda: [name.inner_text().strip("▸ ") for name in page.locator(".place").all()]  # noqa: E731
    assert names()[0].endswith("train.py:5")
    page.click("th >> text=syncs")
    assert names()[0] == "in Optimizer.step"
    assert page.locator("table.lines th[aria-sort=descending]").inner_text() == "syncs"
    page.click("th >> text=syncs")
    assert names()[0].endswith("metrics.py:310")
    page.fill("#lines input", "train unique")
    assert names() == ["train.py:7"]
    page.fill("#lines input", "nothing at all")
    assert "no line matches" in page.inner_text("table.lines")


def test_a_line_and_a_step_lead_into_the_timeline(report, show):
    page = show(report)
    first = drawn(page)
    inner = 10e6 * round(first["from"] / 10e6)
    assert inner in (10e6, 20e6), "it opens on one of the counted steps"
    assert first["to"] - first["from"] == pytest.approx(1.04 * 10e6), "from the end of the one before"
    page.click(".place >> nth=0")
    page.click("text=Show in the timeline")
    assert selected(page) == "train.py:5 nonzero"
    page.locator(".chart").focus()
    page.keyboard.press("End")
    assert "step 3: 10.0 ms" in page.inner_text("#steps .told")
    page.keyboard.press("Enter")
    assert drawn(page)["from"] == pytest.approx(29e6)
    page.locator(".chart [data-step='1']").dispatch_event("click")
    assert drawn(page)["from"] == pytest.approx(9e6)


def test_the_answer_stands_before_what_saves_more_than_all_waits(report, show):
    page = show(report)
    answer, first = page.locator("#answer .verdict").all_inner_texts()
    assert answer.startswith("fix Fixing train.py:5")
    assert first == "If launches cost nothing, a step may be 2.00 ms (22.2 %) shorter."
    assert page.locator("button.primary").count() == 1
    page = show(dataclasses.replace(report, what_if=report.what_if[1:]))
    assert page.inner_text("#answer .verdict").startswith("fix Fixing train.py:5")
    assert page.inner_text("button.primary") == "First: train.py:5"


def test_nothing_sticks_out_at_any_width_in_light_and_dark(report, show):
    for scheme in ("light", "dark"):
        page = show(report, viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        page.click(".place >> nth=0")
        for width in (1400, 800, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        page.click(".theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground


def test_all_that_can_be_clicked_can_be_reached_by_keyboard_and_has_a_name(report, show):
    page = show(report)
    named = "e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')"
    all_of_them = "[...document.querySelectorAll('button, input, select, a, [tabindex]')]"
    unnamed = page.evaluate(f"() => {all_of_them}.filter(e => !({named})).map(e => e.outerHTML.slice(0, 80))")
    assert unnamed == []
    page.locator(".place").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".place").first.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.className") == "place"


def test_an_empty_report_has_a_page(show):
    page = show(Report())
    assert "cannot show where the host waits" in page.inner_text("#lines")
    assert page.locator("canvas").count() == 0


def test_findings_that_did_not_wait_are_told(show):
    found = Finding("unique", Place("a.py", 3), 1, 3, 9, Span(0, 1), "waits", 3)
    line = Line("item", Place("b.py", 1), 1.0, 5.0, 1.0, price=Price(1.0, 1.0, 1.0, 0.0, low=0.5, high=2.0))
    page = show(Report(findings=(found,), lines=(line,)))
    page.click("#lines details >> text=did not wait here")
    assert "a.py:3" in page.inner_text(".findings")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(report, browser, tmp_path):
    (tmp_path / "cell.html").write_text(f"<!doctype html><title>cell</title>{html.notebook(report)}", encoding="utf-8")
    with watched(browser) as page:
        page.goto((tmp_path / "cell.html").as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("body[data-ready]").wait_for(timeout=200_000)
        assert report.lead in frame.locator("#answer").inner_text()
        frame.locator("canvas").focus()
        page.keyboard.press("n")
        assert "train.py:5 nonzero" in frame.locator("#timeline .card").inner_text()


def test_where_a_step_goes_by_line_is_sorted_and_opens_with_heat_in_its_source(report, show):
    page = show(report)
    rows = page.locator("table.takes > tbody > tr")
    assert rows.first.locator(".spot").inner_text().strip("▸ ") == "train.py:5"
    assert rows.last.locator(".bare").inner_text() == "no line known"
    assert "called from train.py:10" in rows.nth(1).inner_text()
    page.locator("table.takes th button", has_text="backward").click()
    assert page.locator("table.takes th[aria-sort=descending]").inner_text() == "backward"
    assert "focal.py:40" in rows.first.inner_text()
    page.locator("table.takes .spot", has_text="train.py:5").click()
    opened = page.locator("table.takes tr.more")
    assert "waiting" in opened.inner_text()
    assert opened.locator("tr.here .heat").inner_text() == "72.2 %"
    assert (
        opened.locator("tr.here .text").inner_text().strip() == "background = torch.nonzero(target == 9, as_tuple=True)"
    )


def test_a_flame_graph_has_the_users_lines_and_below_them_those_of_libraries(report, show):
    page = show(report)
    inner = page.locator(".flame.level-2")
    assert inner.inner_text() == "focal.py:40"
    user = page.locator(".flame.level-1", has_text="10").bounding_box()
    assert user["width"] == pytest.approx(inner.bounding_box()["width"], abs=2)
    page.locator(".flame-graph button", has_text="idle").click()
    assert page.locator(".flame.level-2").count() == 0
    page.locator(".flame.level-1", has_text="5").click()
    assert page.locator("table.takes tr.more").count() == 1


def test_what_would_help_stands_above_and_has_its_interval(report, show):
    page = show(report)
    rows = page.locator("#what-if li")
    assert [row.locator(".words").inner_text() for row in rows.all()] == [
        "if launches cost nothing",
        "if nothing waits",
    ]
    told = rows.first.locator(".reach").get_attribute("title")
    assert told == "2.00 ms (22.2 %) less a step, 1.50 ms to 2.50 ms, at most 3.00 ms"
    assert rows.first.locator(".advice code").inner_text() == "torch.cuda.graph"
    assert "changed for real" not in page.locator("#what-if").inner_text()


def test_of_how_many_loops_an_interval_comes_is_said_as_in_the_terminal(report, show):
    told = dataclasses.replace(report, what_if=tuple(dataclasses.replace(one, loops=21) for one in report.what_if))
    said = "held four in five of 21 loops that were changed for real, all on one GPU"
    assert said in show(told).locator("#what-if").inner_text()
