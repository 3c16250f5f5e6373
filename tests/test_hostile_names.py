"""Names that a stranger chose reach no terminal, no viewer and no CI log as anything but text."""

import json
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from effort import draws
from exporters.conftest import events
from hypothesis import given, settings
from hypothesis import strategies as st
from linter.conftest import MASKS
from warm import Python, in_a_process

import syncscope
from syncscope import discover, exporters, kineto
from syncscope.cli._console import harmless
from syncscope.model.finding import Edit, Finding, Fix, Safety
from syncscope.model.heat import Reason
from syncscope.model.report import Line, Report
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Kind, Lane, Trace
from syncscope.model.words import visible

EVIL = "a\x1b]0;owned\x07\x1b[2J\n::error file=x::owned\r::set-output name=a::b\x9b1m\u202egnp\u2028.py"
CODE = b"\n\n::error ::owned \x1b[2J\n"
FORMATS = [name for name, module in discover.discover(exporters).items() if hasattr(module, "export")]


def found(path: str = EVIL) -> Finding:
    fix = Fix(f"rewrite {EVIL}", (Edit(Span(0, 1), "\x0c"),), Safety.UNSAFE, (f"changes {EVIL}",))
    return Finding(
        *("host-read", Place(path, 3), 1, 3, 4, Span(2, 5)),
        *(f"`{EVIL}` waits, as [you](https://example.com) know", 3, Reason.SET_UP(EVIL), (EVIL,), fix),
        function=EVIL,
        advice=fix,
    )


def report() -> Report:
    finding = found()
    line = Line("item" + EVIL, finding.place, 1.0, 5.0, 1.0, EVIL, rule="host-read", finding=finding)
    sources = {EVIL: CODE}
    return Report((finding,), lines=(line,), verdict=EVIL, notes=(EVIL,), name=EVIL, sources=sources)


def steers(text: str) -> list[str]:
    return [c for c in text if not c.isprintable() and c not in "\n\t" and unicodedata.category(c) != "Zs"]


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_passes_on_what_steers(name):
    text = discover.load(exporters, name).export(report())
    assert not steers(text)
    own = 1 if name == "github" else 0
    assert sum(line.lstrip().startswith("::") for line in harmless(text, commands=bool(own)).splitlines()) == own


def test_a_format_dropped_in_gets_names_that_are_visible_already():
    given = report()
    assert given.lines[0].finding is given.findings[0]
    assert list(given.sources) == [given.findings[0].source_name] == [visible(EVIL)]
    assert given.sources[visible(EVIL)] == CODE
    assert given.findings[0].fix.edits[0].text == "\x0c", "what is to be written stays as it is"
    assert not steers(" ".join((given.verdict, *given.notes, given.lines[0].op, given.findings[0].message)))


def test_github_gets_one_command_and_reads_the_name_back():
    (line,) = discover.load(exporters, "github").export(report()).splitlines()
    assert line.startswith("::warning file=")
    assert visible(EVIL).replace("::", "%3A%3A").replace(":", "%3A") in line.partition(",line")[0].replace(
        "::warning", ""
    )


def test_gitlab_junit_and_sarif_hold_the_visible_name():
    (issue,) = json.loads(discover.load(exporters, "gitlab").export(report()))
    assert issue["location"]["path"] == visible(EVIL)
    root = ET.fromstring(discover.load(exporters, "junit").export(report()).encode())
    assert root.find(".//testcase").get("file") == visible(EVIL)
    (result,) = json.loads(discover.load(exporters, "sarif").export(report()))["runs"][0]["results"]
    assert not steers(result["message"]["text"])
    assert "](" not in result["message"]["text"].replace("\\](", ""), "a viewer would make it a link"


def test_a_trace_is_read_with_names_that_are_visible():
    lane = Lane("p" + EVIL, EVIL, label=EVIL)
    detail = json.dumps({"module": EVIL, "n": [1, {EVIL: 2}]})
    event = Event(Kind.OP, EVIL, lane, 0, 5, place=Place(EVIL, 3), detail=detail)
    trace = kineto.read(kineto.write(Trace.of([event], devices=[{"name": EVIL}], host=EVIL)))
    (back,) = trace
    assert (back.name, back.place) == (visible(EVIL), Place(visible(EVIL), 3))
    assert back.lane == Lane(visible("p" + EVIL), visible(EVIL), label=visible(EVIL))
    assert json.loads(back.detail) == {"module": visible(EVIL), "n": [1, {visible(EVIL): 2}]}
    assert trace.meta["devices"] == [{"name": visible(EVIL)}]


@settings(max_examples=draws(50))
@given(st.text())
def test_what_is_visible_is_one_line_and_stays(text):
    once = visible(text)
    assert not steers(once)
    assert len(once.splitlines()) <= 1
    assert visible(once) == once
    if text.isprintable():
        assert once is text


def test_the_last_door_lets_through_colours_and_lines_and_nothing_else():
    text = "\x1b[31mred\x1b[0m\t1\r\n\x1b]0;t\x07 x\r\x1b[2J\n"
    assert harmless(text, color=True) == "\x1b[31mred\x1b[0m\t1\r\n\\x1b]0;t\\x07 x\\r\\x1b[2J\n"
    assert "\x1b" not in harmless(text)
    obeyed = ("::error ::x", "  ::add-mask::x", "\x1b[1m::error::x", "a ##[error]x", "##vso[task.setvariable]x")
    for line in obeyed:
        assert harmless(line, color=True) != line
    for line in ("void at::native::f", "::at", "a ## b", "::before { }"):
        assert harmless(line).count("::") == line.count("::")
    assert json.loads(harmless(json.dumps({"a": "##[error]"}))) == {"a": "##[error]"}


def test_every_command_prints_through_the_door():
    folder = Path(syncscope.__file__).parent / "cli"
    for path in folder.glob("*.py"):
        if path.name != "_console.py":
            text = path.read_text()
            assert "click.echo" not in text, path
            assert " print(" not in text, path


def run(*args: str, cwd: Path, forked: Python | None = None) -> str:
    if forked is None:
        done = in_a_process("-m", "syncscope", *args, folder=cwd)
    else:
        done = forked("-c", "from syncscope.cli import main; main()", *args, folder=cwd, ours=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_lint_report_and_ranks_through_a_pipe(tmp_path, monkeypatch, forked):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    code = MASKS.replace("    target[background]", "    # \x1b[2J ##[error]owned\n    target[background]")
    evil = "a\x1b[2J\n::error file=x::owned"
    for name in (f"{evil}.py", "::error ::owned.py"):
        (tmp_path / name).write_text(code)
    (tmp_path / f"{evil}.ipynb").write_text("{torch")
    trace = Trace.of([e for e in events() if e.kind != Kind.READ] + [
        Event(Kind.READ, "item[/b]", Lane(4242, 4242), 2_000_000 + 10_000_000 * n, 6_000_000, place=Place(f"{evil}.py", 5))
        for n in range(4)
    ])  # fmt: skip
    kineto.save(trace, tmp_path / "run.json")
    kineto.save(trace, tmp_path / f"{evil}.json")
    for args in (
        ("lint", "--all", "."),
        ("lint", "--all", "--format", "json", "."),
        ("lint", "--all", "--diff", "."),
        ("report", "."),
        ("ranks", "."),
        ("diff", "run.json", "run.json"),
    ):
        said = run(*args, cwd=tmp_path, forked=forked if "--diff" not in args else None)
        assert not steers(said), args
        assert not any(line.lstrip().startswith("::") and "::" in line[3:] for line in said.splitlines()), args
        assert "##[" not in said
        assert "x1b" in said or args[0] in ("ranks", "diff"), "the name is there"
