"""A folder with a recording and the source of its program."""

from pathlib import Path

import pytest
from cli.recorded import SOURCE, recording

from syncscope import kineto


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: `run.pt.trace.json.gz` is of `project/train.py`, as it lay on a cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(SOURCE)
    kineto.save(recording("/cluster/me/project/train.py"), tmp_path / "run.pt.trace.json.gz")
    return tmp_path
