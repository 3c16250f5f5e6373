"""Random programs of file operations, run as `verify` runs them and killed at any moment: afterwards every path below the
program's folder, and beside it, is as it was, byte for byte, mode for mode, with its times, attributes and other names."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from effort import EFFORT, draws
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from verify.conftest import import_once
from verify.test_undo import kernel_tells, tree

from syncscope.verify import processes
from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import HEARD_BY, Program, Request
from syncscope.verify.undo import Remains, undo

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run would import torch anew"),
    pytest.mark.xdist_group("runs of a program"),
]
HEAD = """
import mmap, os, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading
from pathlib import Path
try:
    import numpy, torch
except ImportError:
    pass
kept = []
signal.setitimer(signal.ITIMER_REAL, 5)  # it may wait for a pipe
def tries(do):
    try:
        do()
    except Exception:
        pass
"""
NAMES = st.sampled_from(
    "a b h l r e n big d d/x d/y d/n d/e d/e/z ld ld/x m m/n m/n/o dangling ../out ../out/o ../out/n".split()
)
MODES = st.sampled_from("w a r+ x wb w+ a+ r+b xb".split())
FLAGS = st.sampled_from(
    "O_WRONLY O_RDWR O_CREAT O_TRUNC O_APPEND O_EXCL O_NOFOLLOW O_RDWR|os.O_CREAT O_CREAT|os.O_TRUNC".split()
)
BITS = st.sampled_from([0, 0o400, 0o600, 0o644, 0o755, 0o777])
PYTHON = """
open({p}, {mode}).write({mode}.count('b') * b'new' or 'new')
kept.append(open({p}, {mode}, 0 if 'b' in {mode} else 1))
kept.pop().write('later')
open({p}, 'a').write('more')
open({p}, 'r+').write('M')
os.rename({p}, {q})
os.rename({p}, {q})
os.replace({p}, {q})
os.link({p}, {q})
os.symlink({p}, {q})
os.unlink({p})
os.truncate({p}, 1)
os.mkdir({p})
os.makedirs({p} + '/x/y')
os.rmdir({p})
os.chmod({p}, {bits})
os.utime({p}, (5, 5))
os.setxattr({p}, 'user.x', b'new')
os.removexattr({p}, 'user.mine')
os.mkfifo({p})
os.chdir({p})
os.chdir('..')
shutil.copyfile({p}, {q})
shutil.copy2({p}, {q})
shutil.copytree({p}, {q})
shutil.move({p}, {q})
shutil.rmtree({p})
Path({p}).touch()
Path({p}).write_text('new')
kept.append(tempfile.NamedTemporaryFile(dir={p}))
tempfile.mkdtemp(dir='.')
sqlite3.connect({p}).execute('create table t (x)')
(lambda c: (c.executescript('create table t (x); insert into t values (1)'), c.commit()))(sqlite3.connect({p}))
(lambda f: mmap.mmap(f.fileno(), 0).write(b'M'))(open({p}, 'r+b'))
numpy.memmap({p}, mode='r+', shape=(1,))[:] = 7
numpy.save({p}, numpy.ones(3))
torch.save([1], {p})
os.write(os.open({p}, os.{flags}), b'new')
os.open({p}, os.{flags} | os.O_CREAT)
os.unlink('x', dir_fd=os.open({p}, os.O_RDONLY))
os.rename('x', 'n', src_dir_fd=os.open({p}, os.O_RDONLY), dst_dir_fd=os.open({q}, os.O_RDONLY))
os.open('x', os.O_WRONLY | os.O_TRUNC, dir_fd=os.open({p}, os.O_RDONLY))
os.fchmod(os.open({p}, os.O_RDONLY), {bits})
os.utime(os.open({p}, os.O_RDONLY))
os.ftruncate(os.open({p}, os.O_RDWR), 2)
socket.socket(socket.AF_UNIX).bind({p})
(lambda t: (t.start(), t.join()))(threading.Thread(target=lambda: open({p}, 'w').write('n')))
os.fork() or (tries(lambda: os.rename({p}, {q})), open({p}, 'a').write('n'), os._exit(0))
os.kill(os.getpid(), 9)
signal.setitimer(signal.ITIMER_REAL, {time})
""".split("\n")[1:-1]
ANYBODY = """
os.system('echo more >> ' + {p})
os.system('mv -f ' + {p} + ' ' + {q})
os.system('rm -rf ' + {p})
os.system('cp -a ' + {p} + ' ' + {q})
os.system('ln -sfn ' + {p} + ' ' + {q})
os.system('chmod 600 ' + {p} + '; touch ' + {q})
os.system('(setsid sh -c "sleep 0.01; echo x > ' + {p} + '") &')
subprocess.run([sys.executable, '-c', 'open(' + repr({p}) + ', "w")'])
""".split("\n")[1:-1]


def statements(lines: list[str]) -> st.SearchStrategy[str]:
    """One operation, on paths and with modes that are drawn; whether it fails is its own affair."""
    times = st.floats(1e-4, 0.01)
    filled = st.tuples(st.sampled_from(lines), NAMES, NAMES, MODES, FLAGS, BITS, times)
    return filled.map(
        lambda f: (
            "tries(lambda: "
            + f[0].format(p=repr(f[1]), q=repr(f[2]), mode=repr(f[3]), flags=f[4], bits=f[5], time=f[6])
            + ")"
        )
    )


def build(folder: Path) -> None:
    """A program's folder, and one beside it, with what may be lost."""
    for below in (folder, folder.parent / "out"):
        for path in below.iterdir() if below.exists() else ():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        below.mkdir(exist_ok=True)
    (folder / "d" / "e").mkdir(parents=True)
    for name in ("a", "b", "r", "e", "d/x", "d/y", "d/e/z", "../out/o"):
        (folder / name).write_text(f"mine: {name}")
    (folder / "big").write_bytes(bytes(1 << 15))
    (folder / "h").hardlink_to(folder / "b")
    (folder / "l").symlink_to("a")
    (folder / "ld").symlink_to("d")
    (folder / "dangling").symlink_to("nowhere")
    os.setxattr(folder / "a", "user.mine", b"kept")
    os.chmod(folder / "r", 0o400)
    for path in sorted(folder.parent.rglob("*"), reverse=True):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)


def all_of(folder: Path) -> dict[str, object]:
    """What there is in both."""
    return tree(folder) | {f"../out/{name}": told for name, told in tree(folder.parent / "out").items()}


Run = Callable[[str], None]


@pytest.fixture(scope="module", params=["kernel", "python"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Run]]:
    """A folder, and how a program is run in it: as `verify` does, by processes that import torch once for all."""
    if request.param == "kernel":
        kernel_tells()
    root = tmp_path_factory.mktemp("random")
    folder, script = root / "all" / "project", root / "program.py"
    folder.mkdir(parents=True)

    def undone(journal: Path) -> Remains:
        said = map(json.loads, journal.read_bytes().splitlines() if journal.exists() else ())
        asides = [Path(line["aside"]) for line in said if "aside" in line]
        remains = undo(journal)
        assert not remains.lost
        assert not any(aside.exists() for aside in asides)
        return remains

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "undo", undone)
        patch.chdir(folder)
        patch.setenv(HEARD_BY, request.param)
        import_once(patch, request)
        with Processes(time.monotonic() + 3600 * 5) as runs:

            def run(text: str) -> None:
                script.write_text(text)
                with contextlib.suppress(RunFailedError):  # it was killed
                    runs.run(Request("time", Program(str(script)), ""))

            run("")  # of the first, what it makes stays
            yield folder, run
            assert runs.heard_by == request.param


def check(door: tuple[Path, Run], data: st.DataObject, lines: list[str]) -> None:
    folder, run = door
    if not (folder / "a").exists():
        build(folder)
    before = all_of(folder)
    text = HEAD + "\n".join(data.draw(st.lists(statements(lines), min_size=1, max_size=20)))
    note(text)
    try:
        run(text)
        after = all_of(folder)
        assert after == before
    except BaseException:
        build(folder)
        raise


def lines_for(door: tuple[Path, Run]) -> list[str]:
    return PYTHON + (ANYBODY if os.environ[HEARD_BY] == "kernel" else [])


@settings(max_examples=draws(15), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_program_does_to_files_is_taken_back(door: tuple[Path, Run], data: st.DataObject) -> None:
    check(door, data, lines_for(door))


@pytest.mark.slow
@settings(max_examples=draws(1000), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_thousand_programs_do_to_files_is_taken_back(door: tuple[Path, Run], data: st.DataObject) -> None:
    check(door, data, lines_for(door))


VERIFIES = """
import sys, time
from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import Program, Request
with Processes(time.monotonic() + 3600) as runs:
    for program in ("nothing.py", *["program.py"] * 100):
        try:
            runs.run(Request("time", Program("../" + program), ""))
        except RunFailedError:
            pass
        print("ran", flush=True)
"""


def killed(folder: Path, way: str, text: str, seconds: float) -> None:
    """Runs a program again and again, until `verify` is killed after so many seconds; waits until all is cleared up."""
    root, temporary = folder.parent, folder.parent / "temporary"
    for made in (root / "no-torch", temporary):  # which takes longer than all else
        made.mkdir(exist_ok=True)
    (root / "no-torch" / "torch.py").write_text("raise ImportError")
    (root / "nothing.py").write_text("")
    (root / "program.py").write_text(text)
    given = {"PYTHONPATH": str(root / "no-torch"), "TMPDIR": str(temporary), HEARD_BY: way}
    command = [sys.executable, "-c", VERIFIES]
    with subprocess.Popen(command, cwd=folder, env=os.environ | given, stdout=subprocess.PIPE) as verify:
        assert verify.stdout is not None
        assert verify.stdout.readline() == b"ran\n"
        time.sleep(seconds)
        verify.kill()
    until = time.monotonic() + 500
    while any(temporary.glob("syncscope-verify-*")):
        assert time.monotonic() < until
        time.sleep(0.02)


def check_killed(folder: Path, way: str, data: st.DataObject) -> None:
    build(folder)
    before = all_of(folder)
    text = HEAD + "\n".join(data.draw(st.lists(statements(PYTHON), min_size=5, max_size=20)))
    note(text)
    killed(folder, way, text, data.draw(st.floats(0, 0.3)))
    assert all_of(folder) == before


@pytest.fixture(params=["kernel", "python"])
def way(request: pytest.FixtureRequest) -> str:
    if request.param == "kernel":
        kernel_tells()
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "all" / "project"
    found.mkdir(parents=True)
    return found


@settings(max_examples=3 if EFFORT >= 1 else 1, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_so_it_is_where_verify_itself_is_killed(folder: Path, way: str, data: st.DataObject) -> None:
    check_killed(folder, way, data)


@pytest.mark.slow
@settings(max_examples=draws(100), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_so_it_is_a_hundred_times_where_verify_itself_is_killed(folder: Path, way: str, data: st.DataObject) -> None:
    check_killed(folder, way, data)
