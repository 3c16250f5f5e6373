"""The timeline of the page in a real browser, where one is installed: it moves, finds, selects, says what held an event up."""

import dataclasses
import re

import pytest
from analysis.drawn import timeline
from exporters.browser import drawn, selected, view

from syncscope.analysis.summary import summarize
from syncscope.exporters import html
from syncscope.model.trace import Event, Kind, Lane, Trace

STEPS = 4


def test_the_timeline_zooms_moves_finds_waits_and_follows_links(report, show):
    page = show(report)
    canvas = page.locator("canvas")
    canvas.focus()
    page.keyboard.press("0")
    whole = drawn(page)
    assert (whole["from"], whole["to"]) == (0, 38e6)
    assert whole["drawn"] >= len(report.trace) - 2 * STEPS  # without steps and spans of reads
    colours = "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    assert canvas.evaluate(colours) > 5
    page.keyboard.press("+")
    closer = drawn(page)
    assert closer["to"] - closer["from"] == pytest.approx(0.6 * 38e6)
    page.keyboard.press("ArrowRight")
    assert drawn(page)["from"] > closer["from"]
    page.keyboard.press("0")
    page.keyboard.press("n")
    assert selected(page) == "train.py:5 nonzero"
    page.keyboard.press("n")
    first = drawn(page)
    page.keyboard.press("n")
    assert drawn(page)["from"] == pytest.approx(first["from"] + 10e6)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 70)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    zoomed = drawn(page)
    assert zoomed["to"] - zoomed["from"] < first["to"] - first["from"]
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 70)
    page.mouse.up()
    assert drawn(page)["from"] > zoomed["from"]


def test_an_event_says_what_held_it_up(report, show):
    known = summarize(report.trace)
    page = show(dataclasses.replace(report, reads=known.reads, held_up=known.held_up))
    page.locator("canvas").focus()
    page.keyboard.press("n")
    card = page.locator("#timeline .card")
    assert "waits for\nMemcpy DtoH" in card.inner_text()
    assert "It waited for Memcpy DtoH" in card.inner_text()
    assert "The device was ready for it: it began 5.03 ms after the host came to its launch" in card.inner_text()
    assert drawn(page)["arrows"] == 1
    page.keyboard.press("l")
    assert selected(page) == "Memcpy DtoH"
    assert "launched by\nclEnqueueReadBuffer" in card.inner_text()
    page.keyboard.press("l")
    assert selected(page) == "clEnqueueReadBuffer"
    assert "launches\nMemcpy DtoH" in card.inner_text()
    assert "in\naten::nonzero" in card.inner_text()
    page.keyboard.press("Escape")
    assert card.count() == 0
    page.check("#timeline input[type=checkbox]")
    page.keyboard.press("0")
    assert view(page, "view.show(0, view.events.end)") is None
    assert drawn(page)["arrows"] == 3 * STEPS  # a launch to each kernel and each copy, and each copy to the wait for it


def test_what_held_an_event_up_is_what_the_analysis_says_of_it(report, show):
    trace = timeline("""
        host   a.<item  >...bc.....
        gpu    .AAAAAAA......BBCC..
    """)
    page = show(summarize(trace))
    told = view(page, "[...view.events.why].map((why, i) => [view.events.nameOf(i), view.events.whyOf(i)])")
    why = {"A": "launch", "B": "launch", "C": "queue", "item": "return", "cudaLaunchKernel": "host"}
    assert {name: why for name, why in told if why != "unknown"} == why
    view(page, "view.select(view.events.search('C').find(i => view.events.nameOf(i) === 'C'))")
    assert page.inner_text("#timeline .chain").startswith("Its queue was busy: one piece")
    assert "after the host came to its launch, cudaLaunchKernel" in page.inner_text("#timeline .chain")
    assert "after it had waited" in page.inner_text("#timeline .chain")
    assert "It waited for A" in page.inner_text("#timeline .chain")


def test_a_selected_time_has_statistics(report, show):
    page = show(report)
    view(page, "view.show(0, 39e6)")
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box, width = canvas.bounding_box(), canvas.evaluate("c => c.clientWidth")
    page.mouse.move(box["x"] + 150, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + width - 1, box["y"] + 10, steps=4)
    page.mouse.up()
    card = page.locator("#timeline .card").inner_text()
    assert "39.0 ms selected" in card or "38.9 ms selected" in card
    assert "device busy 61." in card  # four kernels of 6 ms, four copies of 4 us
    assert re.search(r"conv2d\tkernel\t4\t24\.0 ms\t61\.\d %", card)
    assert re.search(r"aten::nonzero\top\t4\t24\.0 ms", card)
    assert "4.00 waits of the host, 24.0 ms" in card


@pytest.mark.slow  # a hundred thousand launches to pack and to draw
def test_a_million_events_stay_fluent_and_small(report, show):
    host, queue = Lane(1, 1), Lane(1, 7, 0)
    events = []
    for i in range(100_000):
        events.append(Event(Kind.CALL, "launch", host, 1000 * i, 400 + i % 100, i))
        events.append(Event(Kind.KERNEL, f"kernel{i % 50}", queue, 1000 * i + 500, 700 + i % 250, i))
    trace = Trace.of(events)
    text = html.export(dataclasses.replace(report, trace=trace, steps=(), reads=()))
    assert len(text) / len(trace) < 12, "bytes an event: a million are about a dozen megabytes"
    page = show(dataclasses.replace(report, trace=trace, steps=(), reads=()))
    assert 500 < drawn(page)["drawn"] < 5000
    frame = (
        "(_, n) => { const since = performance.now(); view.from += n; view.draw(); return performance.now() - since; }"
    )
    took = view(page, f"Array.from({{length: 60}}, {frame})")
    assert min(took) < 100, "ms a frame that nothing else of the machine held up"
    view(page, "view.show(25_000_000, 25_020_000)")
    assert drawn(page)["drawn"] == pytest.approx(40, abs=4)
    assert view(page, "view.events.launched(view.events.link[view.events.rows[0].first]).length") == 1


def test_what_is_packed_is_what_was_recorded(report, show):
    page = show(report)
    each = "[view.events.nameOf(i), view.events.kindOf(i), start, view.events.duration[i]]"
    got = view(page, f"[...view.events.start].map((start, i) => {each})")
    shown_kinds = {"op", "call", "kernel", "copy"}
    wanted = sorted(
        [e.name, e.kind.name.lower(), e.start, e.duration] for e in report.trace if e.kind.name.lower() in shown_kinds
    )
    assert sorted(one for one in got if one[1] != "wait") == wanted
    assert len([one for one in got if one[1] == "wait"]) == len(report.reads)
