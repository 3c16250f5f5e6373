"""Recordings of real GPUs, each read and concluded once in a worker: mark who asks `xdist_group("real traces")`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from syncscope import kineto
from syncscope.analysis.summary import summarize
from syncscope.model.report import Report


@cache
def _concluded(file: Path) -> Report:
    return summarize(kineto.read(file))


@pytest.fixture
def report(shared: Path) -> Callable[[str | Path], Report]:
    """The report of a recording, by its file or by its name without the ending."""
    return lambda name: _concluded(name if isinstance(name, Path) else shared / "traces" / f"{name}.json.gz")
