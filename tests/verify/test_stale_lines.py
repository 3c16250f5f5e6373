"""Which reads `--stale --line` answers: those of the named line, be it the user's or one of a library that reads for it."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from syncscope.tracers import places
from syncscope.verify.request import Program, Request
from syncscope.verify.stale import Stale

LIBRARY = """
def log(value):
    return inner(value)


def inner(value):
    return seen()
"""
USERS = """
def step(value):
    return log(value)
"""


@pytest.mark.parametrize(
    ("file", "line", "is_meant"), [("log.py", 7, True), ("train.py", 3, True), ("train.py", 2, False)]
)
def test_the_line_may_be_the_users_or_the_librarys(tmp_path: Path, file: str, line: int, is_meant: bool) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    library, users = folder / "log.py", tmp_path / "train.py"
    names: dict[str, object] = {"seen": lambda: places.seen_from(sys._getframe(1))}
    for path, text in ((library, LIBRARY), (users, USERS)):
        path.write_text(text)
        exec(compile(text, path, "exec"), names)
    named = str(library if file == "log.py" else users)
    stale = Stale(Request("stale", Program("train.py"), "", lines=((os.path.realpath(named), line),)))
    assert stale._is_meant(names["step"](1)) == is_meant  # type: ignore[operator]
