"""What is written in C, and why it is not there where it cannot be had."""

import re
import shutil
from pathlib import Path

import pytest

from syncscope import native

compiles = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.mark.parametrize(
    ("compiler", "source", "why"),
    [
        ("/nowhere/cc", "int x;\n", "no C compiler: `/nowhere/cc` is not here"),
        ("false", "int x;\n", "`false` does not compile part.c"),
        pytest.param("cc", '#error "not for this machine"\n', "not for this machine", marks=compiles),
    ],
    ids=["missing", "broken", "refused"],
)
def test_why_a_part_in_c_is_not_there_is_a_line(
    compiler: str, source: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "part.c").write_text(source)
    with pytest.raises(OSError, match=re.escape(why)) as raised:
        native.built(tmp_path / "part.c")
    assert str(raised.value) == why
    assert native.module(tmp_path / "part.c") is None


@compiles
def test_it_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "part.c").write_text("int x;\n")
    first = native.built(tmp_path / "part.c")
    monkeypatch.setenv("CC", "/nowhere/cc")
    assert native.built(tmp_path / "part.c") == first
