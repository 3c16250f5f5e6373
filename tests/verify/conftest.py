"""A program to verify, in a folder of its own with what an earlier run of it left."""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import warm
from verify.slow_device import put_device

from syncscope.verify import processes
from syncscope.verify.request import WITHIN


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The working folder: `train.py` is the asking module's TRAIN."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(request.module.TRAIN)
    (folder / "checkpoint.pt").write_text("of yesterday")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A device that is behind, in a library, so that its lines are not the program's."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return put_device(folder)


@pytest.fixture
def no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs that need none: the processes of `verify` import it, and that takes longer than all else here."""
    (tmp_path / "no-torch").mkdir()
    (tmp_path / "no-torch" / "torch.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "no-torch"))


def import_once(patch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """From now on runs are forked from a process that imported torch for the tests before, too."""
    if sys.platform != "linux":
        return
    found: socket.socket = request.getfixturevalue("warm_process")

    def serving(imports: str, kept: Sequence[int]) -> warm.Served:
        return warm.serving(found, {**processes.surroundings(), **os.environ, WITHIN: imports}, kept)

    patch.setattr(processes, "_serving", serving)


@pytest.fixture
def imported_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """As `import_once`, for a test."""
    import_once(monkeypatch, request)
