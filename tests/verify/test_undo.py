"""What a run does to files is taken back: a program in a process of its own, before and after."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from effort import EFFORT

from syncscope.verify import notified, processes
from syncscope.verify.journal import EMPTIED, LARGEST
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program, Request
from syncscope.verify.undo import Remains, undo

WATCHED = Path(__file__).parent / "watched.py"


def tree(folder: Path) -> dict[str, object]:
    """Every path below a folder: its kind, mode, names and time, and what it holds or where it leads."""
    found: dict[str, object] = {}
    for path in sorted((folder, *folder.rglob("*"))):
        told = path.lstat()
        holds = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        attributes = {} if path.is_symlink() else {name: os.getxattr(path, name) for name in os.listxattr(path)}
        links = 0 if path.is_dir() else told.st_nlink
        found[str(path.relative_to(folder))] = oct(told.st_mode), links, told.st_mtime_ns, holds, attributes
    return found


@pytest.fixture(scope="module")
def watcher() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, WATCHED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


Heard = Callable[..., Path]


@pytest.fixture
def heard(watcher: "subprocess.Popen[str]") -> Heard:
    """Runs a program in a folder, and gives its journal: heard by what the kernel tells, or Python."""

    def run(
        way: str, folder: Path, program: str, preparing: bool = False, large: tuple[int, int] = (LARGEST, EMPTIED)
    ) -> Path:
        journal = folder.parent / "run" / "journal"
        journal.parent.mkdir(exist_ok=True)
        asked = {"heard_by": way, "path": str(journal), "preparing": preparing, "large": large, "program": program}
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        print(
            json.dumps(asked | {"folder": str(folder), "environment": dict(os.environ)}), file=watcher.stdin, flush=True
        )
        assert watcher.stdout.readline() == "0\n"
        return journal

    return run


@pytest.fixture(params=["kernel", "python"])
def ran(request: pytest.FixtureRequest, heard: Heard) -> Heard:
    if request.param == "kernel":
        kernel_tells()
    return partial(heard, request.param)


def kernel_tells() -> None:
    if not notified.works():
        pytest.skip("this kernel tells nobody what a program changes")


def made(folder: Path, before: dict[str, object]) -> set[str]:
    """What lies below a folder besides what did before, which is as it was but for the folder's own time."""
    after = tree(folder)
    assert {name: after[name] for name in before if name != "."} == {
        name: before[name] for name in before if name != "."
    }
    return after.keys() - before.keys()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a checkpoint, a log, results of earlier days and a link to the best."""
    folder = tmp_path / "project"
    (folder / "old" / "deep").mkdir(parents=True)
    for name in ("ckpt.pt", "log", "best", "old/a", "old/deep/b"):
        (folder / name).write_text(f"mine: {name}")
        os.utime(folder / name, (1e9, 1e9))
    (folder / "latest").symlink_to("ckpt.pt")
    (folder / "twin").hardlink_to(folder / "log")
    os.setxattr(folder / "best", "user.mine", b"kept")
    return folder


PROGRAMS = [
    "open('ckpt.pt', 'w').write('new')",
    "open('latest', 'w').write('new')",  # the file that it leads to
    "open('log', 'a').write('more')",
    "open('log', 'r+').write('M')",
    "Path('best.tmp').write_text('new'); os.replace('best.tmp', 'best'); open('best', 'a').write('er')",
    "os.rename('ckpt.pt', 'ckpt.old'); open('ckpt.pt', 'w').write('new')",
    "os.remove('latest'); os.symlink('log', 'latest')",
    "os.makedirs('runs/7'); open('runs/7/events', 'w').write('x'); os.mkdir('runs/8')",
    "shutil.rmtree('old'); os.mkdir('old'); open('old/a', 'w').write('new')",
    "os.truncate('log', 2); os.link('log', 'again'); os.remove('log')",
    "os.rename('old', 'older'); os.mkdir('old'); open('old/a', 'w').write('new')",
    "shutil.move('old', 'aside'); open('aside/a', 'a').write('more')",
    "for n in '12': os.mkdir('tmp'); open('tmp/f', 'w').write(n); os.rename('tmp', 'epoch' + n)",
    "shutil.rmtree('old'); os.mkdir('tmp'); open('tmp/a', 'w').write('n'); os.rename('tmp', 'old'); os.remove('old/a')",
    "os.mkdir('empty')\ntry: os.rename('empty', 'old')\nexcept OSError: pass",
    "sqlite3.connect('results.db').execute('create table t (x)')",
    "import os as o; fd = o.open('ckpt.pt', o.O_WRONLY | o.O_TRUNC); o.write(fd, b'new')",
    # a checkpoint, or a log, that is rotated before it is written
    "os.replace('ckpt.pt', 'best')\nfor n in '12': open('ckpt.pt', 'w').write(n)",
    "os.replace('log', 'best'); open('log', 'a').write('new'); open('best', 'a').write('more')",
    # what fails, and what is done then
    "try: os.rename('log', 'nodir/b')\nexcept OSError: pass\nopen('log', 'a').write('more')",
    "try: os.link('log', 'best')\nexcept OSError: pass\nopen('log', 'r+').write('M')",
    "try: os.symlink('log', 'latest')\nexcept OSError: os.chmod('log', 0o600)",
    "os.chmod('log', 0o400); os.chmod('old', 0o500); os.utime('best', (1, 1)); os.mkfifo('pipe')",
    "os.setxattr('log', 'user.mine', b'new'); os.removexattr('best', 'user.mine')",
    "fd = os.open('old', os.O_RDONLY); os.unlink('a', dir_fd=fd); os.open('c', os.O_CREAT | os.O_WRONLY, dir_fd=fd)",
    "os.link('log', 'again'); open('again', 'r+').write('M')",
    "open('twin', 'a').write('more')",  # another name of `log`
    "os.chmod('log', 0o600); open('log', 'w').write('new'); open('twin', 'w').write('newer')",
    "os.rename('old', 'older'); open('older/a', 'a').write('more'); shutil.rmtree('older')",
    "os.mkdir('d'); open('d/a', 'w'); shutil.rmtree('d'); os.symlink('old', 'd'); open('d/c', 'w')",
    "shutil.rmtree('old'); os.symlink('.', 'old'); open('old/log', 'w')",
    "os.remove('log'); os.mkdir('log'); open('log/x', 'w')",
    "os.symlink('old', 'new')\ntry: os.rename('old', 'new')\nexcept OSError: pass",
    "import threading as t; t = t.Thread(target=lambda: open('log', 'a').write('m')); t.start(); t.join()",
]
# Files that are thrown away count only where a program does so.
THROWING = [program for program in PROGRAMS if EFFORT >= 1 or re.search(r"'w'|TRUNC|truncate", program)]


@pytest.mark.parametrize(
    ("program", "large"),
    [
        *(pytest.param(program, (LARGEST, EMPTIED)) for program in PROGRAMS),
        *(pytest.param(program, (LARGEST, 0), id=f"emptied {program}") for program in THROWING),
    ],
)
def test_what_a_run_does_is_taken_back(project: Path, ran: Heard, program: str, large: tuple[int, int]) -> None:
    before = tree(project)
    journal = ran(project, program, large=large)
    assert tree(project) != before  # as it would by itself
    undo(journal)
    assert tree(project) == before
    assert not journal.exists()


@pytest.mark.parametrize(
    "program",
    [
        "[p.unlink() for p in (*Path('old/deep').iterdir(), Path('old/a'))]; os.rmdir('old/deep'); os.rmdir('old')",
        "for n in (1, 2): open('ckpt.pt', 'w').write('x'); [os.remove(p) for p in Path('.').glob('ckpt*')]",
        "for n in (1, 2): [shutil.rmtree(p) for p in Path('.').glob('old*')]; os.mkdir(f'older{n}')",
    ],
)
def test_a_program_that_clears_its_folders_finds_only_what_is_its_own(project: Path, ran: Heard, program: str) -> None:
    before = tree(project)
    undo(ran(project, program))
    assert tree(project) == before


def test_of_files_too_large_for_a_copy_it_is_said_which_stay_changed(project: Path, ran: Heard) -> None:
    before = tree(project)
    program = "open('ckpt.pt', 'r+'); open('log', 'r+').write('new'); open('best', 'w').write('new')"
    assert undo(ran(project, program, large=(5, 5))).changed == [str(project / "log")]
    after = tree(project)
    assert {name for name in before if before[name] != after[name]} == {"log", "twin"}


def test_what_a_child_of_the_program_changed_first_is_taken_back(project: Path, ran: Heard) -> None:
    before = tree(project)
    write = "open('log', 'a').write('more')"
    undo(ran(project, f"child = os.fork()\nif not child: {write}; os._exit(0)\nos.waitpid(child, 0); {write}"))
    assert tree(project) == before


def test_memory_that_was_shared_under_a_name_is_given_back(project: Path, ran: Heard) -> None:
    memory = Path(f"/dev/shm/of-a-test-{os.getpid()}")
    make = f"from multiprocessing import shared_memory as m; m.SharedMemory({memory.name!r}, True, 9)"
    journal = ran(project, f"os.setsid(); {make}; os.kill(0, 9)")  # and what would clear up after it
    assert memory.exists()
    undo(journal)
    assert not memory.exists()


@pytest.mark.parametrize(
    "program",
    [
        "os.system('echo more >> log; mv ckpt.pt best; rm -r old; mkdir -p new/er; touch new/er/x; ln -s x y')",
        'subprocess.run([sys.executable, \'-c\', \'open("log", "w"); import os; os.mkdir("d"); os.rename("old", "d/o")\'])',
        "import ctypes; c = ctypes.CDLL(None); c.rename(b'log', b'best'); c.fopen(b'ckpt.pt', b'w'); c.unlink(b'latest')",
        "import ctypes; c = ctypes.CDLL(None); c.truncate(b'log', 1); c.chmod(b'best', 0); c.mkfifo(b'p', 511)",
        "import ctypes; c = ctypes.CDLL(None); c.renameat2(-100, b'old', -100, b'log', 2); open('log/a', 'a').write('M')",
        "fd = os.open('old/a', os.O_RDONLY); os.fchmod(fd, 0); os.utime(fd, (5, 5)); os.setxattr(fd, 'user.x', b'')",
        "subprocess.run('cd old && (setsid sh -c \"echo x > a; mv a deep/c\") & wait; sleep 0.3', shell=True)",
        "c = sqlite3.connect('r.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t (x)'); os._exit(0)",
    ],
)
def test_the_kernel_tells_of_other_programs_and_libraries_too(project: Path, heard: Heard, program: str) -> None:
    kernel_tells()
    before = tree(project)
    journal = heard("kernel", project, program)
    assert tree(project) != before
    assert undo(journal) == Remains()
    assert tree(project) == before


def test_what_a_run_that_was_killed_left_is_not_overwritten(project: Path, ran: Heard) -> None:
    killed = ran(project, "open('ckpt.pt', 'w').write('new')")
    (kept,) = (Path(line["aside"]) for line in map(json.loads, killed.read_text().splitlines()) if "aside" in line)
    killed.unlink()  # and nobody took it back
    undo(ran(project, "open('ckpt.pt', 'w').write('newer')"))
    assert "mine: ckpt.pt" in [path.read_text() for path in kept.iterdir()]
    shutil.rmtree(kept)


def test_a_checkpoint_that_is_renamed_before_the_first_step_comes_back(project: Path, ran: Heard) -> None:
    before = tree(project)
    program = "os.replace('ckpt.pt', 'ckpt.bak.pt')\nfor n in '12': open('ckpt.pt', 'w').write(n)"
    assert undo(ran(project, program, preparing=True)) == Remains()
    assert tree(project) == before


def test_what_is_made_to_prepare_stays_and_what_is_changed_does_not(project: Path, ran: Heard) -> None:
    before = tree(project)
    program = "os.mkdir('data'); open('data/set', 'w').write('x'); os.mkdir('empty'); open('log', 'w').write('x')"
    assert undo(ran(project, program, preparing=True)) == Remains(stays=[str(project / "data")])
    assert made(project, before) == {"data", "data/set"}


def test_a_data_set_unpacked_under_another_name_stays(project: Path, ran: Heard) -> None:
    before = tree(project)
    undo(
        ran(
            project,
            "os.mkdir('data.part'); open('data.part/set', 'w').write('x'); os.rename('data.part', 'data')",
            True,
        )
    )
    assert made(project, before) == {"data", "data/set"}


def test_caches_keep_what_a_run_leaves(project: Path, ran: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.parent / "cache"))
    (project.parent / "cache").mkdir()
    undo(ran(project, f"open({str(project.parent / 'cache' / 'kernel')!r}, 'w').write('x')"))
    assert (project.parent / "cache" / "kernel").exists()


def test_caches_below_the_folder_where_it_runs_keep_it_too(
    project: Path, ran: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(project.parent / "cache"))  # where the hooks may be compiled to
    before = tree(project)
    undo(ran(project, "os.makedirs('.triton/cache'); open('.triton/cache/kernel', 'w').write('x'); open('log', 'w')"))
    assert made(project, before) == {".triton", ".triton/cache", ".triton/cache/kernel"}


@pytest.mark.usefixtures("no_torch")
def test_files_are_taken_back_whole_where_ctrl_c_comes_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> Remains:
        assert tree(project) != before
        signal.raise_signal(signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # which any thread of the process may hear
        time.sleep(0.1)
        return undo(path)

    (project / "train.py").write_text("import os; open('log', 'w').write('new'); os.rename('old', 'older')")
    before = tree(project)
    monkeypatch.chdir(project)
    monkeypatch.setattr(processes, "undo", interrupted)
    other = threading.Thread(target=time.sleep, args=(600,), daemon=True)
    other.start()
    with Processes(time.monotonic() + 500) as runs, pytest.raises(KeyboardInterrupt):
        runs.run(Request("time", Program("train.py"), ""))
    assert tree(project) == before
