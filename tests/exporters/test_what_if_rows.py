from dataclasses import replace

from syncscope.exporters import _what_if


def test_of_how_many_loops_an_interval_comes_is_said(report):
    told = tuple(replace(one, loops=9) for one in report.what_if)
    assert told
    shown = "\n".join(text.plain for text in _what_if.rows(replace(report, what_if=told), 200, whole=True))
    assert "like the 9 loops" in shown
    assert "like the" not in "\n".join(text.plain for text in _what_if.rows(report, 200, whole=True))
