"""Files that are there whole or not at all, and where caches are."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from syncscope import files
from syncscope.errors import UserError


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "out.json"
    with files.whole(path) as file:
        file.write(b"half")
        assert [p.suffix for p in path.parent.iterdir()] == [".part"]
    assert path.read_bytes() == b"half"
    assert [p.name for p in path.parent.iterdir()] == ["out.json"]


def fail(file: BinaryIO, error: type[BaseException]) -> None:
    file.write(b"new")
    raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_leaves_the_old_file_and_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(error), files.whole(path) as file:
        fail(file, error)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out", b"old")]


def test_mode_and_link_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "script.py", tmp_path / "link.py"
    path.write_bytes(b"old")
    path.chmod(0o750)
    link.symlink_to(path)
    files.write(link, b"new", durable=True)
    assert link.is_symlink()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o750)


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write(pipe, b"told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_place_that_takes_no_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="cannot be written"):
        files.write(tmp_path / "file" / "below", b"")
    with pytest.raises(UserError, match="cannot be written: Is a directory"):
        files.write(tmp_path, b"")


def test_one_variable_moves_all_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(files.CACHE, raising=False)
    at_home = files.cache_folder("lint")
    assert (at_home.name, at_home.parent.name) == ("lint", "syncscope")
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    assert files.cache_folder("native") == tmp_path / "native"
    root = Path(files.__file__).parent
    sources = {p.relative_to(root) for p in root.rglob("*.py") if "user_cache" in p.read_text(encoding="utf-8")}
    assert sources == {Path("files.py")}
