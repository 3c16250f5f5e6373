"""A disk that is full, at any moment: the program goes on as if nobody watched, and what was recorded is there."""

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from effort import EFFORT, SEARCHING

import syncscope
from syncscope import kineto
from syncscope.model.trace import Kind
from syncscope.tracers import record_file, recovery

HERE = Path(__file__).parent
# Records: what comes in turns of two, three or four is met in each of its places.
EVERY = 1 if SEARCHING else 5 if EFFORT >= 1 else 7

AT_EVERY = """
import contextlib, ctypes, gc, io, shutil, sys, tempfile
from pathlib import Path
gc.disable()  # while torch imports its compilers
import torch, syncscope
from syncscope import kineto
from syncscope.tracers import recovery
from syncscope.tracers.opencl import dispatch
disk, fake = ctypes.CDLL({disk!r}), ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
folder = Path({folder!r})

def train(**how):
    torch.manual_seed(0)
    model, losses = torch.nn.Linear(2, 1), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with syncscope.trace(folder / "runs", **how) if how else contextlib.nullcontext():
        dispatch.tables.hook(table, "fake")
        for step in range(6):
            optimizer.zero_grad()
            with torch.profiler.record_function(f"region {{step}}"):
                loss = model(torch.ones(1, 2)).sum()
            loss.backward()
            fake.enqueue(400)
            optimizer.step()
            losses.append(loss.item())
    return losses

alone, told, kept, at = train(), 0, 0, 1 - {every}
while True:
    at += {every}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tempfile.tempdir = str(folder)
    said = io.StringIO()
    disk.fill(str(folder).encode(), at, {error}, {once})
    with contextlib.redirect_stderr(said):
        assert train(**{how!r}) == alone
    needed = disk.needed()
    disk.fill(str(folder).encode(), 1 << 30, 0, 0)
    if needed < at:
        break
    whole = len(list(folder.glob("runs/*/*.gz"))) == {how!r}.get("repeat", 1)  # only its copy for another viewer is missing
    assert "syncscope: " in said.getvalue() or whole or {once}, at  # the file of one line of a launch
    assert said.getvalue().count("\\n") <= 2, (at, said.getvalue())
    left = list(folder.glob("*.records"))
    traces = [kineto.read(path) for path in folder.glob("runs/*/*.pt.trace.json.gz")]
    traces += [recovery.recover_file(left[0])] if left else []
    assert "`syncscope report" in said.getvalue() or not left
    told, kept = told + 1, kept + bool(traces)
print(told, kept)
"""


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that has no room."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("disk") / "full.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-w", str(HERE / "full_disk.c"), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True)
    return path


def preloaded(disk: Path) -> tuple[str, str]:
    """Has Python begin with it."""
    again = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return "-c", f"import os, sys; os.environ['LD_PRELOAD'] = {str(disk)!r}; {again}"


@pytest.mark.parametrize(
    ("how", "error", "once"),
    [
        pytest.param({"whole": True}, errno.ENOSPC, False, id="from then on"),
        pytest.param(
            {"wait": 1, "active": 2, "repeat": 2},
            errno.EDQUOT,
            False,
            id="of several recordings",
            marks=pytest.mark.slow,
        ),
        pytest.param({"whole": True}, errno.EIO, True, id="once", marks=pytest.mark.slow),
    ],
)
def test_a_program_goes_on_whichever_write_fails(
    python: Any, fake_library: Any, disk: Path, tmp_path: Path, how: dict[str, Any], error: int, once: bool
) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "full"
    told = {"disk": str(disk), "fake": fake_library._name, "folder": str(folder)}
    code = AT_EVERY.format(**told, how=how, error=error, once=int(once), every=EVERY)
    done = python(code, before=preloaded(disk))
    assert done.returncode == 0, done.stderr
    failed, kept = map(int, done.stdout.split())
    assert failed > 10 / EVERY
    assert kept > failed - 8 / EVERY  # but where not even the first files could be made


CUT = """
import ctypes
from pathlib import Path
from syncscope.tracers.opencl import dispatch
from syncscope.tracers.session import Session
fake = ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
with Session(folder=Path("kept"), on_trace=lambda trace: False) as session:
    dispatch.tables.hook(table, "fake")
    for step in range(4):
        fake.enqueue(2500)
        session.step()
"""


def test_a_file_that_is_cut_off_anywhere_is_read_up_to_there(python: Any, fake_library: Any, tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "cut"
    kept.mkdir()
    assert python(CUT.format(fake=fake_library._name)).returncode == 0
    whole = recovery.recover(kept)
    assert whole is not None
    for path in kept.iterdir():
        size = path.stat().st_size
        for at in sorted(
            {*range(record_file.HEADER, min(size, 9000), 96 + 64 * (EVERY - 1)), *range(9000, size, 40_000)}
        ):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(kept, folder)
            os.truncate(folder / path.name, at)
            part = recovery.recover(folder)
            assert part is not None
            assert set(part.names) <= {*whole.names, "kernel"}
            assert len(part) <= len(whole)
        os.truncate(folder / path.name, 17)
        assert recovery.recover(folder) is not None  # of the other file


def test_a_file_of_which_any_piece_is_missing_is_read(python: Any, fake_library: Any, tmp_path: Path) -> None:
    """As earlier versions left it, which went on once there was room again."""
    kept, folder = tmp_path / "kept", tmp_path / "cut"
    kept.mkdir()
    assert python(CUT.format(fake=fake_library._name)).returncode == 0
    for path in kept.iterdir():
        content, window = path.read_bytes(), record_file.read(path).header.get("window", 0)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        for at in range(record_file.HEADER + window, len(content), window or 64 * EVERY):
            (folder / path.name).write_bytes(content[:at] + content[at + (window or 64) :])
            assert recovery.recover(folder) is not None
        for at in range(record_file.HEADER + 64, 8000 if window else 0, 64 * EVERY):  # of the first window
            (folder / path.name).write_bytes(content[:at] + bytes([254]) + content[at + 1 :])
            assert recovery.recover(folder) is not None


def test_a_step_of_which_a_part_found_no_room_is_none(
    python: Any, fake_library: Any, disk: Path, tmp_path: Path
) -> None:
    """The hook's file is full in the third step, Python's is not."""
    kept = tmp_path / "kept"
    kept.mkdir()
    full = CUT.replace(
        "for step in range(4):", "for step in range(4):\n        step == 2 and disk.fill(b{folder!r}, 1, 28, 0)"
    )
    code = f"import ctypes\ndisk = ctypes.CDLL({str(disk)!r})" + full.format(fake=fake_library._name, folder=str(kept))
    done = python(
        code.replace(
            "on_trace=lambda trace: False",
            "on_trace=lambda trace: print(trace.meta['notes'], [e.name for e in trace if 'Step' in e.name])",
        ),
        before=preloaded(disk),
    )
    assert done.returncode == 0, done.stderr
    assert "['ProfilerStep#0', 'ProfilerStep#1']" in done.stdout
    assert "records of OpenCL were lost" in done.stdout
    assert "the recording ended after step 3: no room on its disk (the program goes on" in done.stderr


def test_a_folder_that_is_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "records").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "records"))
    with syncscope.trace(tmp_path / "runs", whole=True) as trace:
        trace.step()
        shutil.rmtree(tmp_path / "records")
        trace.step()
    found = kineto.read(trace.files[0])
    assert int((found.kind == Kind.STEP).sum()) == 2


def test_a_recording_leaves_room_for_what_the_program_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free = 1 << 30
    monkeypatch.setattr(record_file, "_room", lambda handle: free)
    monkeypatch.setattr("syncscope.tracers.process_recording.LOOK", -1)
    with syncscope.trace(tmp_path / "runs", whole=True) as trace:
        trace.step()
        free = (1 << 29) - 1
        for _ in range(3):
            trace.step()
    assert "after step 2: half of the room that there was on its disk is taken" in capsys.readouterr().err
    assert int((kineto.read(trace.files[0]).kind == Kind.STEP).sum()) == 2
