"""What a run does to files is taken back: a program in a process of its own, before and after."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from syncscope.verify import processes
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program, Request
from syncscope.verify.undo import undo

WATCHED = """
import os, shutil, sqlite3, sys
from pathlib import Path
from syncscope.verify.undo import Journal
Journal(Path(sys.argv[1]), lambda: {preparing}).listen()
{program}
os._exit(0)
"""


def tree(folder: Path) -> dict[str, str | None]:
    """Every path below a folder, with what it holds or where it leads."""
    found: dict[str, str | None] = {}
    for path in sorted(folder.rglob("*")):
        text = (
            str(path.readlink()) if path.is_symlink() else path.read_text(errors="replace") if path.is_file() else None
        )
        found[str(path.relative_to(folder))] = text
    return found


def ran(folder: Path, program: str, preparing: bool = False) -> Path:
    """Runs a program in the folder; its journal."""
    journal = folder.parent / "run" / "journal"
    journal.parent.mkdir()
    code = WATCHED.format(program=program, preparing=preparing)
    subprocess.run([sys.executable, "-c", code, str(journal)], cwd=folder, check=True, timeout=60)
    return journal


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a checkpoint, a log, results of earlier days and a link to the best."""
    folder = tmp_path / "project"
    (folder / "old" / "deep").mkdir(parents=True)
    for name in ("ckpt.pt", "log", "best", "old/a", "old/deep/b"):
        (folder / name).write_text(f"mine: {name}")
    (folder / "latest").symlink_to("ckpt.pt")
    return folder


@pytest.mark.parametrize(
    "program",
    [
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
    ],
)
def test_what_a_run_does_is_taken_back(project: Path, program: str) -> None:
    before = tree(project)
    journal = ran(project, program)
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
def test_a_program_that_clears_its_folders_finds_only_what_is_its_own(project: Path, program: str) -> None:
    before = tree(project)
    undo(ran(project, program))
    assert tree(project) == before


def test_of_files_too_large_for_a_copy_it_is_said_which_stay_changed(project: Path) -> None:
    large = "from syncscope.verify import undo; undo.LARGEST = 5; open('ckpt.pt', 'r+'); open('log', 'r+').write('new')"
    assert undo(ran(project, large)) == [str(project / "log")]  # the other was not written to


def test_what_a_child_of_the_program_changed_first_is_taken_back(project: Path) -> None:
    before = tree(project)
    write = "open('log', 'a').write('more')"
    undo(ran(project, f"child = os.fork()\nif not child: {write}; os._exit(0)\nos.waitpid(child, 0); {write}"))
    assert tree(project) == before


def test_what_a_run_that_was_killed_left_is_not_overwritten(project: Path) -> None:
    ran(project, "open('ckpt.pt', 'w').write('new')").unlink()  # and nobody took it back
    (project.parent / "run").rmdir()
    undo(ran(project, "open('ckpt.pt', 'w').write('newer')"))
    assert "mine: ckpt.pt" in tree(project).values()


def test_what_is_made_to_prepare_stays_and_what_is_changed_does_not(project: Path) -> None:
    before = tree(project)
    undo(
        ran(project, "os.mkdir('data'); open('data/set', 'w').write('x'); open('log', 'w').write('x')", preparing=True)
    )
    assert tree(project) == before | {"data": None, "data/set": "x"}


def test_a_data_set_unpacked_under_another_name_stays(project: Path) -> None:
    before = tree(project)
    undo(
        ran(
            project,
            "os.mkdir('data.part'); open('data.part/set', 'w').write('x'); os.rename('data.part', 'data')",
            True,
        )
    )
    assert tree(project) == before | {"data": None, "data/set": "x"}


def test_caches_keep_what_a_run_leaves(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.parent / "cache"))
    (project.parent / "cache").mkdir()
    undo(ran(project, f"open({str(project.parent / 'cache' / 'kernel')!r}, 'w').write('x')"))
    assert (project.parent / "cache" / "kernel").exists()


def test_caches_below_the_folder_where_it_runs_keep_it_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(project.parent / "cache"))  # where the hooks may be compiled to
    before = tree(project)
    undo(ran(project, "os.makedirs('.triton/cache'); open('.triton/cache/kernel', 'w').write('x'); open('log', 'w')"))
    assert tree(project) == before | {".triton": None, ".triton/cache": None, ".triton/cache/kernel": "x"}


def test_files_are_taken_back_whole_where_ctrl_c_comes_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> list[str]:
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
    with Processes(time.monotonic() + 120) as runs, pytest.raises(KeyboardInterrupt):
        runs.run(Request("time", Program("train.py"), ""))
    assert tree(project) == before
