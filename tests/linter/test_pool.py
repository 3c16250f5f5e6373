"""Work over processes: the same answers in the same order, and no run that dies of one file."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from linter.conftest import MASKS, READS

from syncscope.linter import engine, pool, run

MANY = 12


@pytest.fixture
def many(door, monkeypatch):
    """Files of which a chunk holds several, and a process is given several chunks."""
    monkeypatch.setattr(run, "WORTH_A_POOL", 0)
    monkeypatch.setattr(pool, "CHUNK_BYTES", 500)
    for number in range(MANY):
        door.write(f"m{number:02}.py", (READS, MASKS)[number % 2])
    sizes = [path.stat().st_size for path in sorted(door.folder.glob("*.py"))]
    lengths = [len(chunk) for chunk in pool.chunks(sizes, int, 2)]
    assert len(lengths) > 4
    assert max(lengths) > 1
    return door


def test_processes_change_nothing_but_the_time(many):
    alone = many("lint", "--no-cache", "--jobs", "1", "--format", "json")
    assert alone.out.count('"rule"') == MANY
    assert many("lint", "--no-cache", "--jobs", "2", "--format", "json") == alone


def test_what_is_said_of_a_file_does_not_depend_on_the_files_seen_before(door):
    # two files pass likes to a function of a third, and one makes an object of its class
    door.write(
        "shared.py",
        """
        from dataclasses import dataclass


        def first(values):
            return values[0]


        @dataclass
        class Size:
            height: int
        """,
    )
    for name in ("ones", "twos"):
        door.write(
            f"{name}.py",
            f"""
            import torch
            from shared import Size, first


            def forward({name}: torch.Tensor, size: Size):
                made = {"Size(torch.rand(3))" if name == "ones" else "size"}
                return first(({name},)).item(), int(made.height)
            """,
        )
    said = [
        door("lint", "--no-cache", "--jobs", "1", "--min-confidence", "low", "--format", "json", *files).out
        for files in (("ones.py", "twos.py"), ("twos.py", "ones.py"))
    ]
    one, other = (sorted(json.loads(each), key=lambda f: (f["path"], f["line"], f["column"])) for each in said)
    assert len(one) >= 2
    assert one == other


def test_fixes_made_by_processes_are_written(many):
    many("lint", "--fix", "--jobs", "2")
    assert "nonzero" not in "".join(path.read_text() for path in many.folder.glob("*.py"))


def test_a_file_that_kills_its_process_is_named_and_the_others_are_linted(many, monkeypatch):
    real = engine.check_file

    def check_file(path, config, named=False):
        if path == "m07.py":
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path, config, named)

    monkeypatch.setattr(engine, "check_file", check_file)
    ran = many("lint", "--no-cache", "--jobs", "2", "--format", "text")
    assert "m07.py: the process that linted it died; please report this file" in ran.err
    assert ran.code == 2
    assert len(ran.lines) == MANY - 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_that_meets_a_bug_is_named_with_its_place_and_the_others_are_linted(many, monkeypatch, jobs):
    real = engine.check_file

    def check_file(path, config, named=False):
        if path == "m07.py":
            engine.source_of(path, None)
        return real(path, config, named)

    monkeypatch.setattr(engine, "check_file", check_file)
    ran = many("lint", "--no-cache", "--jobs", jobs, "--format", "text")
    assert re.search(
        r"m07\.py: not linted, by a bug of syncscope: \w+Error: .* \(in \w+, syncscope/linter/\w+\.py:\d+\)", ran.err
    )
    assert ran.code == 2
    assert len(ran.lines) == MANY - 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc names the children")
def test_ctrl_c_ends_all_processes_and_writes_nothing_half(door, start):
    for number in range(60):
        door.write(f"m{number:02}.py", MASKS + READS * 120)
    command = [sys.executable, "-m", "syncscope", "lint", "--no-cache", "--jobs", "2", "--fix"]
    process = start(command, stderr=subprocess.PIPE)
    children: list[str] = []
    while len(children) < 2 and process.poll() is None:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            children = file.read().split()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.decode().strip() == "interrupted"
    assert len(children) == 2
    assert not [child for child in children if os.path.exists(f"/proc/{child}")]
    assert all(path.name.startswith("m") for path in door.folder.iterdir())
