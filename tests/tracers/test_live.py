import io
import sys
from typing import Any

import pytest

from syncscope.tracers import live
from syncscope.tracers.session import Session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_the_line_says() -> None:
    then, now = (0, 10, 100, 0), (2_000_000_000, 30, 160, 500_000_000)
    assert live.text(then, now) == "syncscope: step 30 · 100 ms/step · 3 syncs/step · device 25% busy"
    assert live.text(then, (1_000_000_000, 10, 104, 0)) == "syncscope: step 10 · 4 syncs"
    assert live.text((0, 0, 0, 0), (1, 0, 0, 0)) == "syncscope: step 0"


def test_the_line_makes_room_for_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    error, out = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(live, "EVERY", 0.01)
    with Session() as session, live.LiveLine(session):
        while "step 0" not in error.getvalue():
            pass
        print("the program's")
        assert sys.stdout.isatty()
    assert out.getvalue() == "the program's\n"
    assert error.getvalue().endswith(live.ERASE)
    assert sys.stdout is out


def test_no_terminal_no_line(capsys: Any) -> None:
    with Session() as session, live.LiveLine(session):
        pass
    assert capsys.readouterr().err == ""
