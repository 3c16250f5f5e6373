"""A program to verify, in a folder of its own with what an earlier run of it left."""

from pathlib import Path

import pytest
from verify.slow_device import DEVICE


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
    (folder / "slow_device.py").write_text(DEVICE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / "slow_device.py"
