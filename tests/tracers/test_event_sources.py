"""A file dropped into `tracers/sources/` is a source of every recording: the page of docs/development.md, done."""

import gc
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from in_c import in_c

from syncscope.errors import UserError
from syncscope.model.trace import Kind
from syncscope.tracers import doctor, process_recording, recovery, sources
from syncscope.tracers.hooks import methods
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.session import Session

DOCS = Path(__file__).parents[2] / "docs" / "development.md"


@pytest.fixture
def garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example of the page, in the folder."""
    (example,) = re.findall(r"  ```python\n(  # syncscope/tracers/sources/garbage\.py\n.*?)```", DOCS.read_text(), re.S)
    (tmp_path / "garbage.py").write_text(textwrap.dedent(example))
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    gc.disable()  # no collection but those that a test asks for
    yield
    gc.enable()
    sys.modules.pop("syncscope.tracers.sources.garbage", None)
    del sources.garbage


@pytest.mark.usefixtures("garbage")
def test_its_events_are_in_the_trace_and_the_doctor_knows_it() -> None:
    gc.collect()
    with Session() as session:
        session.step()
        gc.collect(1)
        session.step()
    gc.collect()
    found = [event for event in session.trace if event.name == "garbage collection, generation 1"]
    assert len(found) == 1
    (step,) = [event for event in session.trace if event.name == "ProfilerStep#1"]
    assert step.start <= found[0].start < found[0].end <= step.end
    assert found[0].lane == step.lane
    assert session.trace.meta["collections"] == sum(e.name.startswith("garbage") for e in session.trace)
    assert any(item.what == "garbage collector" for item in doctor.survey())


@pytest.mark.usefixtures("garbage")
def test_nothing_of_it_is_left() -> None:
    before = list(gc.callbacks)
    with Session():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


@pytest.mark.usefixtures("garbage")
def test_what_it_told_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    session = Session(folder=tmp_path / "records")
    (tmp_path / "records").mkdir()
    with session:
        gc.collect(1)
        session.step()
        assert session._take is not None
        session._take.recording.events.flush()
        trace = recovery.recover(tmp_path / "records")
    assert trace is not None
    assert {e.name for e in trace if e.kind == Kind.ANNOTATION} >= {"garbage collection, generation 1"}
    assert [e.name for e in trace if e.kind == Kind.STEP] == ["ProfilerStep#0"]


@pytest.mark.usefixtures("garbage")
def test_nothing_is_left_of_one_whose_start_fails_half_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(process_recording.known_sources()["garbage"]):  # type: ignore[misc]
        def start(self, events: PythonEvents) -> None:
            super().start(events)
            raise MemoryError("no room")

    before, files = list(gc.callbacks), set(Path(tempfile.gettempdir()).glob("syncscope-*"))
    monkeypatch.setattr(sys.modules["syncscope.tracers.sources.garbage"], "SOURCE", Broken)
    with Session():  # the program goes on
        pass
    assert "MemoryError: no room" in capsys.readouterr().err
    assert gc.callbacks == before
    assert not process_recording.running()
    assert set(Path(tempfile.gettempdir()).glob("syncscope-*")) <= files


def test_a_recording_that_finds_no_source_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where another version is installed beside the running program: it was empty, and told of no waits."""
    monkeypatch.setattr(sources, "__path__", [str(tmp_path / "gone")])
    with Session() as session:
        pass
    assert f"nothing of syncscope is found in {tmp_path / 'gone'}" in capsys.readouterr().err
    with pytest.raises(UserError, match="nothing of syncscope is found"):
        _ = session.trace


def test_sources_that_come_after_the_first_recording_are_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    before = process_recording.known_sources()
    (tmp_path / "later.py").write_text("raise ImportError('needs what this version does not have')")
    assert process_recording.known_sources() == before


def test_a_recording_of_nothing_on_a_machine_without_hooks_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncscope.tracers.opencl.compiled.library", lambda: None)  # as on macOS
    with Session() as session:
        pass
    assert list(session.trace) == []
    assert session.trace.start.dtype == np.int64


@in_c
def test_the_doctor_says_what_is_not_heard_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a machine without a compiler or Python's headers it said that lines were missing, and not that syncs were."""

    def found() -> sources.Item:
        return next(item for item in doctor.survey() if item.what == "torch's operators")

    assert (found().state, found().said) == (sources.GOOD, "heard in C")
    broken = tmp_path / "broken.c"
    broken.write_text("#error no headers are here\n")
    monkeypatch.setattr(methods, "SOURCE", broken)
    assert found().state == sources.WARN
    assert "a dry run hears no nonzero" in found().said
    assert found().said.endswith("no headers are here")
    assert "compiler" in found().hint
