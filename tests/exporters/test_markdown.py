"""The report in short, as a pull request shows it."""

import dataclasses

from syncscope.exporters import markdown
from syncscope.model.report import Line, Report
from syncscope.model.source import Place


def test_the_whole_as_it_is_written(report, golden):
    golden("report.md", markdown.export(report))


def test_names_of_strangers_stay_text_and_stay_in_their_cell(report):
    line = Line("it|em`", Place("a|b`<img src=x>.py", 3), 1.0, 1.0, 0.0)
    text = markdown.export(
        dataclasses.replace(report, name="<b>[x](y)</b> *_|", lines=(line,), notes=("a | b <script>",))
    )
    assert "### syncscope: \\<b\\>\\[x\\](y)\\</b\\> \\*\\_\\|" in text
    row = next(row for row in text.splitlines() if "img" in row)
    assert row.startswith("| `a\\|b'<img src=x>.py:3` | `it\\|em'` | 1 |")
    assert "- a \\| b \\<script\\>" in text


def test_many_lines_are_cut_and_counted():
    lines = tuple(Line("item", Place("a.py", n), 1.0, 1.0, 0.0) for n in range(1, 14))
    text = markdown.export(Report(lines=lines))
    assert "a.py:10`" in text
    assert "a.py:11`" not in text
    assert "and 3 more." in text
