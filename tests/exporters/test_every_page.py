"""What holds for each kind of page: file, comparison, proof, ranks, notebook; by a real browser, axe-core and a printer."""

import dataclasses
import json
import os
import re
import sys
from pathlib import Path

import pytest
from exporters.browser import shown, watched

from syncscope.exporters import _figures as figures
from syncscope.exporters import html
from syncscope.model.memory import Held, MemoryUse
from syncscope.model.source import Place
from syncscope.model.work import ModuleLine

AXE = Path(os.environ.get("AXE", Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"))
MS = 1_000_000


@pytest.fixture
def whole(report):
    """The report with everything that a page may show of one recording."""
    here = Held(Place("train.py", 5), "", "", 3_000_000, 12)
    there = Held(Place("model.py", 40), "forward", "", 1_500_000, 3)
    before = Held(None, "", "", 500_000, 0)
    curve = html._timeline.np.array([[0, 500_000], [5 * MS, 5_000_000], [9 * MS, 700_000], [30 * MS, 900_000]])
    held = MemoryUse(0, 500_000, 5_000_000, 15 * MS, 1, here, (here, there, before), 8_000_000, 77, True, curve)
    modules = (ModuleLine(("model",), 0.0, 0.0, 5.5 * MS), ModuleLine(("model", "model.0"), 1.0, 5.5 * MS, 5.5 * MS))
    work = dataclasses.replace(report.work, modules=modules)
    return dataclasses.replace(report, memory=(held,), work=work, verified=VERIFIED)


VERIFIED = {
    "program": "train.py",
    "step_ms_before": 9.0,
    "step_ms_after": 7.6,
    "reads_before": 4.25,
    "reads_after": 3.25,
    "values": "the same",
    "ratio": 0.844,
    "low": 0.82,
    "high": 0.87,
    "same_ratio": 1.002,
    "same_low": 0.99,
    "same_high": 1.01,
    "predicted_ratio": 0.85,
    "predicted_low": 0.83,
    "predicted_high": 0.88,
    "came_true": True,
    "steps": 40,
    "runs": 6,
    "notes": ["the two were run in turns"],
    "fixes": [
        {
            "path": "train.py",
            "line": 5,
            "title": "torch.where instead of index assignment",
            "safety": "safe",
            "changes": "",
            "kept": True,
            "ratio": 0.844,
            "low": 0.82,
            "high": 0.87,
            "values": "the same",
            "why": "",
        }
    ],
}
LINE = {"path": "train.py", "line": 5, "op": "nonzero", "count": 1.0, "blocked_ms": 5.0}
COMPARISON = {
    "before_name": "before",
    "after_name": "after",
    "words": "A step takes 15.6 % less.",
    "before": {"step_ms": 9.0, "device_busy": 0.66, "reads_per_step": 4.25, "blocked_ms": 5.2, "steps": 4},
    "after": {"step_ms": 7.6, "device_busy": 0.79, "reads_per_step": 3.25, "blocked_ms": 0.2, "steps": 4},
    "spread_ms": [0.1, 0.2],
    "device_work_ms": [6.0, 6.1],
    "device_work_pieces": [2.0, 2.0],
    "launches": [2.0, 1.0],
    "before_steps_ms": [9.0, 9.1, 8.9],
    "after_steps_ms": [7.6, 7.7, 7.5],
    "predicted_ms": 7.7,
    "predicted_range_ms": [7.4, 8.1],
    "gone": [LINE],
    "new": [],
    "changed": [],
    "same": [],
}
TIMES = {"step": 9e6, "busy": 6e6, "compute": 4e6, "overlapped": 1e6, "copy": 5e5, "exposed": 1.5e6, "idle": 3e6}
LONGER = {"name": "/home/me/project/training/train.py:42", "own": 3e6, "others": 1e6}
RANK = {
    "times": TIMES | {"why": [["wait", 3e6]]},
    "lines": [LONGER],
    "symptom": 1e6,
    "late": 2,
    "imposed": 3e6,
    "cause": "host work",
    "saved_alone": 5e5,
}
OWED = [{"rank": 1, "time": 3e6, "cause": "host work"}]
MEET = {"key": "0//all_reduce", "late": 1, "owed": OWED, "skew": 3e6, "cause": "host work", "transfer": 1e5}
CELL = '<!doctype html><html lang="en"><meta charset="utf-8"><title>cell</title>'  # in UTF-8, as notebooks are
JOB = {
    "step": 9e6,
    "ranks": [{"number": n, "blocked": 2e6, **RANK} for n in range(3)],
    "meets": [MEET],
    "steps": [[n, [[0, 9.0 + n], [1, 9.5]]] for n in range(3)],
    "timeline": {
        "lanes": [
            {
                "number": n,
                "steps": {"0": [0.0, 9.0 + n], "1": [12.0, 21.5]},
                "met": [[0, 5.0 + (n == 1), 6.0, 6.5, 0], [1, 20.0, 20.0, 20.5, -1]],
            }
            for n in range(3)
        ],
        "late": [["0//all_reduce", 1, "host work"]],
        "steps": 2,
        "ranks": 3,
    },
    "lines": [],
}
HEADS = [("name", True), ("ranks", False)]
TWO_JOBS = [(name, "Rank 1 comes last.", ["a note"], JOB) for name in ("one", "two")]
RANKS = [("Rank 1, the worst", COMPARISON)]


@pytest.fixture
def page_of(whole, tmp_path):
    """Writes the page of that kind, and tells its file."""
    compared = {"comparison": COMPARISON}
    kinds = {
        "file": lambda: html.page(*html.parts(whole)),
        "comparison": lambda: html.page(html.parts(whole)[0] | compared, html.parts(whole)[1]),
        "ranks": lambda: html.page(html.job_page("job", "Rank 1 comes last.", ["a note"], JOB), ""),
        "jobs": lambda: html.page(html.jobs_page(HEADS, [["one", "3"], ["two", "3"]], "of all", TWO_JOBS), ""),
        "index": lambda: html.page(
            html.index_page("2", "A row each.", HEADS, [["one", "3"]] * 2, ["a b.html", "b.html"], []), ""
        ),
        "compared": lambda: html.page(
            html.compared_jobs_page("a and b", "3 ranks", HEADS, [["1", "3"]], [], RANKS), ""
        ),
        "notebook": lambda: f"{CELL}<main>{html.notebook(whole)}</main></html>",
    }

    def written(kind):
        file = tmp_path / f"{kind}.html"
        file.write_text(kinds[kind](), encoding="utf-8")
        return file

    return written


def opened(page, file):
    """The frame in which the page stands, with everything unfolded that can be."""
    if file.stem == "notebook":
        page.goto(file.as_uri())
        page.frame_locator("iframe").locator("body[data-ready]").wait_for(timeout=200_000)
        frame = page.frames[-1]
    else:
        frame = shown(page, file).main_frame
    if frame.locator(".place").count():
        frame.locator(".place").first.click()
    frame.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
    return frame


LOOKS = [  # each page, each scheme and each width; all of them with one another would take minutes
    ("file", "light", 1200),
    ("comparison", "dark", 800),
    ("ranks", "light", 400),
    *(
        pytest.param(*look, marks=pytest.mark.slow)  # of the parts of these
        for look in (
            ("file", "dark", 400),
            ("jobs", "dark", 400),
            ("compared", "light", 800),
            ("index", "light", 800),
            ("notebook", "dark", 1200),
        )
    ),
]


@pytest.mark.parametrize(("name", "scheme", "width"), LOOKS)
def test_axe_finds_nothing_serious_and_nothing_sticks_out(name, scheme, width, page_of, browser):
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    with watched(browser, bypass_csp=True, **look) as page:
        frame = opened(page, page_of(name))
        assert frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        if not AXE.is_file():
            pytest.skip("npm install --prefix .venv/axe axe-core, or AXE=path/of/axe.min.js")
        frame.evaluate(AXE.read_text(encoding="utf-8"))
        found = frame.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_each_row_of_the_index_leads_to_the_page_beside_it(page_of, browser):
    with watched(browser) as page:
        links = shown(page, page_of("index")).locator("#table tbody tr td:first-child a")
        assert links.evaluate_all("all => all.map(one => one.getAttribute('href'))") == ["a%20b.html", "b.html"]
        assert links.all_inner_texts() == ["one", "one"]


@pytest.mark.parametrize(
    "name", ["file", *(pytest.param(one, marks=pytest.mark.slow) for one in ("comparison", "ranks"))]
)
def test_a_page_is_printed_whole_with_what_was_folded(name, page_of, browser, tmp_path):
    with watched(browser) as page:
        frame = shown(page, page_of(name)).main_frame
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert frame.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
        hidden = "[...document.querySelectorAll('.tools, .bar')].every(one => getComputedStyle(one).display === 'none')"
        assert frame.evaluate(hidden)
        page.pdf(path=tmp_path / "page.pdf", format="A4")
    text = (tmp_path / "page.pdf").read_bytes()
    assert text.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", text)) >= 1


NUMBER = re.compile(r"[−-]?\d+(?:,\d{3})*(?:\.\d+)?(?: (?:ns|us|ms|s|%|B|kB|MB|GB|TFLOPS|GB/s))?")


def forms(model):
    """Every way in which a figure of the report may be written on the page."""
    total = sum(line["ms"] for line in model["work"]["kernels"])
    wholes = (model["step_ms"], total, model["memory"][0]["peak_bytes"])

    def of(value, key):
        yield from (figures.three(value), figures.fixed(value), f"{value:,.0f}", str(value))
        yield from (figures.time(1e6 * value), figures.time(value), figures.percent(value))
        if "bytes" in key:
            yield from (figures.size(value), f"{value / 1e9:,.0f} GB/s")
        if "flops" in key:
            yield f"{figures.three(value / 1e12)} TFLOPS"
        yield from (figures.percent(value / one) for one in wholes)
        yield from (figures.time(1e6 * (model["step_ms"] - one)) for one in (value, max(0, value)))

    def walk(value, key=""):
        if isinstance(value, dict):
            for name, one in value.items():
                yield from walk(one, name)
        elif isinstance(value, list):
            yield str(len(value))
            yield str(max(0, len(value) - 1))  # and so many more
            for one in value:
                yield from walk(one, key)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from of(value, key)

    return set(walk(model))


def texts(value):
    """All text in the report."""
    if isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield from value.replace("`", "").split("\n")


def test_every_number_on_the_page_is_one_of_the_json_report(whole, browser, page_of):
    model, _ = html.parts(whole)
    model["page"].pop("memory")
    known = forms(model) | forms({**model, "reads": []})
    derived = {
        figures.three(sum(read["count"] for read in model["reads"])),  # reads a step
        figures.time(sum(1e6 * line["blocked_ms"] for line in model["lines"])),
        figures.time(sum(1e6 * line["ms"] for line in model["work"]["kernels"])),
        figures.percent(1 - 5.5 / sum(line["ms"] for line in model["work"]["kernels"])),  # in no module
        figures.percent(6 / sum(line["ms"] for line in model["work"]["kernels"])),  # of known work
    }
    step = model["page"]["by_line"]["step_ms"]
    parts = ("device_ms", "backward_ms", "idle_ms")
    derived |= {figures.percent(sum(line[part] for part in parts) / step) for line in model["by_line"]}
    answers = [one["answer"] for one in (model, *model["lines"]) if one["answer"]]
    for share in {answer[end] for answer in answers for end in ("share", "low", "high") if answer[end] is not None}:
        derived |= {f"{100 * share:.0f}", f"{100 * share:.0f} %"}  # with two digits
        derived |= {
            figures.time(1e6 * model["step_ms"] * part) for part in (abs(share), 1 - share)
        }  # so much longer, too
    with watched(browser, viewport={"width": 1400, "height": 900}) as page:
        frame = opened(page, page_of("file"))
        for button in frame.locator(".place").all()[1:]:
            button.click()
        frame.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
        clean = (
            "for (const one of document.querySelectorAll('svg, .legend, .source .number, .key, .lead')) one.remove()"
        )
        frame.evaluate(f"() => {{ {clean} }}")
        text = frame.inner_text("main")
        heads = frame.inner_text(".figures")
    for said in sorted(set(filter(None, texts(model))), key=len, reverse=True):
        if re.search(r"\d", said):
            text = text.replace(said.strip(), " ")
    strange = [n for n in NUMBER.findall(text) if n not in known | derived]
    assert strange == []
    assert len(NUMBER.findall(text)) > 100
    assert figures.percent(model["device_busy"]) in heads


def test_a_page_that_an_older_version_kept_opens(whole, browser, tmp_path):
    model, events = html.parts(whole)
    for name in ("memory", "verified"):
        del model[name]
    del model["page"]["memory"], model["work"]["modules"], model["timeline"]["whys"]
    sizes = model["timeline"]["columns"]
    count = model["timeline"]["events"]
    packed = html._timeline.gzip.decompress(html.base64.b64decode(events))
    kept = packed[: -count * (sizes.pop("why") + sizes.pop("by"))]
    events = html.base64.b64encode(html._timeline.gzip.compress(kept)).decode()
    (tmp_path / "old.html").write_text(html.page(model, events), encoding="utf-8")
    with watched(browser) as page:
        shown(page, tmp_path / "old.html").locator("canvas").focus()
        page.keyboard.press("n")
        assert "train.py:5 nonzero" in page.inner_text("#timeline .card")


def test_perfetto_gets_what_is_seen_when_it_answers(whole, browser, tmp_path, page_of):
    """Its page is played by one of ours: asked until it answers, then given the trace."""
    asked = "window.heard = []; window.open = () => ({postMessage: (what, to) => { heard.push([what, to]); }})"
    with watched(browser, bypass_csp=True) as page:
        frame = shown(page, page_of("file"))
        frame.evaluate(
            f"() => {{ {asked}; const open = window.open; window.peer = open(); window.open = () => peer; }}"
        )
        frame.click("text=Perfetto")
        frame.wait_for_function("heard.length > 1")
        assert frame.evaluate("heard[0]") == ["PING", "https://ui.perfetto.dev"]
        answer = "new MessageEvent('message', {data: 'PONG', source: window})"
        frame.evaluate(f"() => {{ dispatchEvent({answer}); }}")  # of somebody else: it goes on asking
        frame.wait_for_timeout(250)
        assert frame.evaluate("heard.every(([what]) => what === 'PING')")
        script = f"{html.bundle('perfetto.js')} module_perfetto.traceEvents(document.querySelector('#timeline').view)"
        told = json.loads(
            frame.evaluate(f"() => {{ {script.replace('module_perfetto.', 'return module_perfetto.')}; }}")
        )
        names = {event["name"] for event in told["traceEvents"] if event["ph"] == "X"}
        assert {"conv2d", "aten::nonzero", "train.py:5 nonzero"} <= names


def test_a_file_may_have_any_name(report, browser, tmp_path):
    """That of what every object of JavaScript has, one with signs that mean something elsewhere, one that is no text."""
    paths = ("constructor", "__proto__", "/home/$&/a b#?.py", "/home/\udce9.py", "<img src=x onerror=alert(1)>.py")
    lines = tuple(dataclasses.replace(report.lines[0], place=Place(path, 5)) for path in paths)
    named = dataclasses.replace(report, lines=lines, sources={}, memory=())
    (tmp_path / "page.html").write_text(html.export(named), encoding="utf-8")
    with watched(browser) as page:
        places = shown(page, tmp_path / "page.html").locator("#lines .place")
        assert places.count() == len(paths)
        for number in range(len(paths)):
            places.nth(number).click()
            assert "Its source is not at hand" in page.inner_text(".details")
            places.nth(number).click()
            assert page.locator(".details").count() == 0


def test_steps_that_take_no_time_are_no_part_of_anything(whole, browser, tmp_path):
    model, events = html.parts(whole)
    model["uses"]["step_ms"] = 0.0
    for step in model["steps"]:
        step["ms"] = 0.0
    (tmp_path / "page.html").write_text(html.page(model, events), encoding="utf-8")
    with watched(browser) as page:
        text = shown(page, tmp_path / "page.html").inner_text("main")
        assert not re.search(r"NaN|Infinity|undefined", text)


def test_the_ranks_of_a_job_lie_side_by_side_one_step_at_a_time(browser, tmp_path):
    (tmp_path / "ranks.html").write_text(
        html.page(html.job_page("job", "Rank 1 comes last.", [], JOB), ""), encoding="utf-8"
    )
    with watched(browser, viewport={"width": 420, "height": 900}) as page:
        lanes = shown(page, tmp_path / "ranks.html").locator(".lanes")
        kinds = ("step", "wait", "move", "unknown", "last")
        assert [lanes.locator(f".lane-{kind}").count() for kind in kinds] == [3, 2, 3, 0, 1]
        waits = lanes.locator(".lane-wait title").all_text_contents()
        assert waits == [f"rank {n}, all_reduce: waits 1.00 ms for rank 1, late by host work" for n in (0, 2)]
        page.get_by_label("The next step").click()
        assert [lanes.locator(f".lane-{kind}").count() for kind in kinds] == [3, 0, 0, 3, 0]
        assert page.get_by_label("Step that is drawn").input_value() == "1"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow  # 150,000 cells of a table
def test_a_job_of_more_steps_than_a_call_takes_arguments_is_drawn(browser, tmp_path):
    job = JOB | {"steps": [[n, [[step, 9.0 + n] for step in range(5000)]] for n in range(30)]}  # V8 takes 125,000
    page_of_it = html.page(html.job_page("job", "Rank 1 comes last.", [], job), "")
    (tmp_path / "ranks.html").write_text(page_of_it, encoding="utf-8")
    with watched(browser) as page:
        assert shown(page, tmp_path / "ranks.html").locator(".heat").first.locator("tbody tr").count() == 30
