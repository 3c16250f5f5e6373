"""Waits inside of libraries: each at its own line, below the user's that led there, with what the linter says of either."""

from analysis.drawn import COLUMN

import syncscope
from syncscope.analysis.summary import summarize
from syncscope.model.finding import Finding
from syncscope.model.source import Place, Span
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1), Lane(0, 7, 0)
BOXES = "/env/lib/python3.12/site-packages/detector/boxes.py"


def recording(waits, path=BOXES) -> Trace:
    """Steps of a launch and a wait for it, for each of `waits`: (its line, the user's line that leads to it or None)."""
    events, now, number = [], 0, 0
    for step in range(6):
        begin = now
        for line, caller in waits:
            number += 1
            place, led = Place(path if caller else "train.py", line), caller and Place("train.py", caller)
            told = {"place": place, "caller": led}
            events += [
                Event(Kind.CALL, "cudaLaunchKernel", HOST, now, COLUMN, correlation=number, **told),
                Event(Kind.KERNEL, "k", QUEUE, now + COLUMN, 5 * COLUMN, correlation=number),
                Event(Kind.READ, "item", HOST, now + 2 * COLUMN, 5 * COLUMN, **told),
                Event(
                    Kind.CALL, "cudaStreamSynchronize", HOST, now + 2 * COLUMN, 5 * COLUMN, flags=Flag.BLOCKING, **told
                ),
            ]
            now += 9 * COLUMN
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", HOST, begin, now - begin))
    return Trace.of(events)


def finding(path: str, line: int) -> Finding:
    return Finding("host-read", Place(path, line), 1, line, 9, Span(0, 1), "reads", 3)


def test_waits_of_a_library_are_lines_of_their_own_for_each_line_that_leads_there():
    report = summarize(recording([(40, 14), (63, 14), (40, 20), (7, None)]))
    found = {(line.place.line, line.caller and line.caller.line): line.count for line in report.lines}
    assert found == {(40, 14): 1.0, (63, 14): 1.0, (40, 20): 1.0, (7, None): 1.0}
    assert {read.caller and read.caller.line for read in report.reads} == {14, 20, None}


def test_what_one_line_leads_to_is_added_up():
    report = summarize(recording([(40, 14), (63, 14), (7, None)]))
    (group,) = (one for one in report.groups if one.kind == "caller")
    assert (group.name, group.count) == ("train.py:14", 2.0)
    shares = [line.price.share for line in report.lines if line.caller]
    assert abs(group.price.share - sum(shares)) < 1


def test_the_finding_is_the_librarys_own_or_that_of_the_line_that_leads_there():
    trace = recording([(40, 14), (63, 20)])
    own, users = finding(BOXES, 40), finding("train.py", 20)
    report = summarize(trace, [own, users])
    assert {line.place.line: line.finding for line in report.lines} == {40: own, 63: users}


def test_a_library_that_is_installed_here_is_linted_where_it_waits(tmp_path, monkeypatch):
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    boxes = folder / "detector" / "boxes.py"
    boxes.parent.mkdir(parents=True)
    boxes.write_text(
        "import torch\n\n\ndef sizes(boxes: torch.Tensor, device):\n    boxes = boxes.to(device)\n"
        "    total = boxes.sum().item()\n    kept = boxes.mean().item()\n    return total, kept\n"
    )
    monkeypatch.chdir(tmp_path)
    report = syncscope.report(recording([(6, 14)], str(boxes)))
    (line,) = report.lines
    assert line.finding is not None, "the linter looks at libraries where they wait"
    assert line.rule == "host-read"
    assert [found.place.line for found in report.findings] == [6], "and of what did not wait there nothing is said"
    assert b"total = boxes.sum().item()" in report.sources[line.place.path]


def test_of_a_file_no_source_of_elsewhere_is_opened(tmp_path, monkeypatch):
    from syncscope import kineto

    outside = tmp_path / "elsewhere" / "site-packages" / "boxes.py"
    outside.parent.mkdir(parents=True)
    outside.write_text("secret = 1\n" * 9)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    kineto.save(recording([(6, 14)], str(outside)), here / "run.json")
    assert syncscope.report("run.json").sources == {}, "it is none of this interpreter's packages"


def test_a_sentence_names_a_librarys_file_without_its_folder():
    report = summarize(recording([(40, 14), (63, 14)]))
    assert " at detector/boxes.py:40" in report.verdict
    assert "/env/" not in report.verdict
    assert "verify" not in report.verdict, "which tries the rewrites of the user's own program"
    assert {name for name, _ in report.uses.spent[3].by} == {"detector/boxes.py:40 item", "detector/boxes.py:63 item"}
