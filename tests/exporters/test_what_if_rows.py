from dataclasses import replace

from syncscope.exporters import _what_if
from syncscope.model.answer import Answer, Decision
from syncscope.model.what_if import Effort


def test_of_how_many_loops_an_interval_comes_is_said(report):
    told = tuple(replace(one, loops=9) for one in report.what_if)
    assert told
    shown = "\n".join(text.plain for text in _what_if.rows(replace(report, what_if=told), 200, whole=True))
    assert "four in five of 9 loops" in shown
    assert "like the" not in "\n".join(text.plain for text in _what_if.rows(report, 200, whole=True))


def test_why_what_is_to_be_done_first_is_not_what_saves_most_is_said(report):
    top = max(report.what_if, key=lambda one: one.saving)
    easier = replace(
        top, name="the loader is never late", saving=0.8 * top.saving, high=2 * top.saving, effort=Effort.WORD
    )
    harder = replace(top, effort=Effort.STEP)
    short, how = _what_if.first(replace(report, what_if=(harder, easier)))
    assert "if the loader is never late" in short.plain
    assert f"less to write than what saves most, if {top.name} (" in how.plain
    _, alone = _what_if.first(replace(report, what_if=(harder,)))
    assert "less to write" not in alone.plain
    _, untold = _what_if.first(replace(report, what_if=(harder, easier), unexplained=0.5))
    assert "saves most" not in untold.plain, "where no replay holds, nobody knows what does"


def test_why_a_row_may_save_more_than_the_device_is_idle_for_it_is_said(report):
    shown = " ".join("\n".join(text.plain for text in _what_if.rows(report, 100, whole=False)).split())
    assert "a launch goes with the host's work that prepares it" in shown
    assert "rows do not add up" in shown


def test_where_nobody_knows_what_else_saves_the_waits_of_the_answer_come_first(report):
    waits = replace(
        report.what_if[0], name="nothing waits", advice="the waits of `item` at a.py:3", begin=True, answered=True
    )
    waits = replace(waits, saving=0.1 * report.saving_step, low=-1.0, high=0.2 * report.saving_step, word="waits")
    other = replace(waits, name="a.py:9 launches once", advice="one `torch.cat`", answered=False, word="launches")
    other = replace(other, saving=2 * waits.saving, high=3 * waits.saving)
    answer = Answer(Decision.TRY, 0.1, -0.1, 0.2, 0.5)
    unsure = replace(report, what_if=(other, waits), unexplained=0.5, answer=answer)
    (told,) = _what_if.first(unsure)
    assert told.plain.startswith(
        "the waits of `item` at a.py:3; besides, if a.py:9 launches once, a step may be shorter, by"
    )
    left = replace(unsure, answer=Answer(Decision.LEAVE))
    assert _what_if.first(left)[0].plain.startswith("if a.py:9 launches once")
    sure = replace(unsure, unexplained=0.0)
    assert _what_if.first(sure)[0].plain.startswith("if a.py:9 launches once"), (
        "its saving is known, and the larger one"
    )
