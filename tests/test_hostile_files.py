"""What lies where a trace or a repository says: nothing leaks of what is not a source, and nothing is read without end."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from cli.recorded import MS, recording
from linter.conftest import READS, door  # noqa: F401  a fixture

import syncscope
from syncscope import kineto
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace

SECRET = "hunter2: the secret of the house"
HOST = Lane(1, 1)


@pytest.fixture
def outside(tmp_path, door):  # noqa: F811
    """A folder beside the project."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "passwd").write_text(f"one\n{SECRET}\n")
    (folder / "private.py").write_text(f"one\n{SECRET}\n")
    return folder


def traced(door, *paths: str) -> str:  # noqa: F811
    events = []
    for n, path in enumerate(paths):  # each is waited for in five steps
        for event in recording(path, 2):
            number = event.correlation + 100 * n if event.correlation >= 0 else -1
            name = event.name.replace("#", f"#{5 * n}") if event.kind == Kind.STEP else event.name
            events.append(replace(event, start=event.start + 50 * MS * n, correlation=number, name=name))
    kineto.save(Trace.of(events), door.folder / "run.json")
    return "run.json"


@pytest.mark.parametrize("more", [(), ("--source", ".")], ids=["", "source"])
@pytest.mark.parametrize("form", ["terminal", "html", "json"])
def test_a_file_that_is_no_source_of_the_user_is_only_named(door, outside, form, more):  # noqa: F811
    door.write("train.py", "a\nb = loss.item()\n")
    door.write("notes.txt", f"one\n{SECRET}\n")
    (door.folder / "link.py").symlink_to(outside / "private.py")
    (door.folder / "linked").symlink_to(outside)
    names = ("passwd", "private.py", "../outside/private.py")
    paths = [str(outside / name) for name in names[:2]] + [names[2], "notes.txt", "link.py", "linked/private.py"]
    trace = traced(door, *paths, "/etc/passwd", "train.py")
    assert door("report", trace, "--format", form, "-o", "out", *more).code == 0
    text = (door.folder / "out").read_text()
    assert SECRET not in text
    assert Path("/etc/passwd").read_text().splitlines()[0] not in text
    assert "b = loss.item()" in text or form == "json", "what is the user's is shown"
    assert "passwd" in text


def test_the_sources_of_the_project_around_the_working_folder_are_at_hand(door, monkeypatch):  # noqa: F811
    door.write("pyproject.toml", "")
    door.write("train.py", READS)
    trace = traced(door, str(door.folder / "train.py"))
    (door.folder / "scripts").mkdir()
    monkeypatch.chdir(door.folder / "scripts")
    assert [f.rule for f in syncscope.report(f"../{trace}").findings] == ["host-read"]


def test_what_a_program_recorded_itself_is_its_own(door, outside):  # noqa: F811
    (outside / "private.py").write_text(READS)
    trace = Trace.of([Event(Kind.READ, "item", HOST, 0, 5, place=Place(str(outside / "private.py"), 11))])
    assert [f.rule for f in syncscope.report(trace).findings] == ["host-read"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("kind", ["device", "pipe", "endless"])
def test_nothing_waits_for_a_file_without_end(door, kind):  # noqa: F811
    names = ("bad.py", ".gitignore", "pyproject.toml", "imported.py", "trace.json")
    for name in names:
        path = door.folder / name
        if kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.touch()
            os.truncate(path, 1 << 40)
    door.write(
        "train.py", READS.replace("import torch\n", "import torch\nimport imported\nfrom imported import *\n", 1)
    )
    ran = door("lint")
    assert ran.lines == [("train.py", 13, "host-read")]
    why = "larger than 64 MiB" if kind == "endless" else "not a regular file"
    assert f"bad.py: {why}" in door("lint", "bad.py").err
    assert "cannot read the baseline" in door("lint", "--baseline", "bad.py").err
    trace = traced(door, "bad.py", "imported.py")
    assert door("report", trace, "--source", ".").code == 0
    assert door("report", trace).code == 0
    if kind != "endless":
        assert door("report", ".", "--no-price").code in (0, 2)


def test_sources_outside_of_the_working_folder_are_named_with_the_option_that_shows_them(door, outside):  # noqa: F811
    """What lies elsewhere is not shown unasked, and that is said; with the option it is."""
    (outside / "train.py").write_text(READS)
    trace = traced(door, str(outside / "train.py"))
    said = syncscope.report(trace)
    assert said.findings == ()
    assert any(f"`--source {os.path.realpath(outside)}`" in note for note in said.notes)
    shown = syncscope.report(trace, code=str(outside))
    assert [f.rule for f in shown.findings] == ["host-read"]
    assert not any("--source" in note for note in shown.notes)
    assert not any("--source" in note for note in syncscope.report(traced(door, "/nowhere/train.py")).notes)
