"""How many copies of a program are in memory at once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.verify import room
from syncscope.verify.results import Verification, as_object
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.search import Search

MEMINFO = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"


def test_what_may_be_taken_is_the_hosts_or_the_containers(tmp_path: Path) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text(MEMINFO)
    assert room.available(memory, tmp_path) == 8_000_000 << 10
    (tmp_path / "memory.current").write_text("600000000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert room.available(memory, tmp_path) == 8_000_000 << 10
    (tmp_path / "memory.max").write_text("1000000000\n")
    assert room.available(memory, tmp_path) == 400_000_000
    assert room.available(tmp_path / "none", tmp_path) is None


def test_a_program_of_half_of_the_memory_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available", lambda: 900 << 20)
    monkeypatch.setattr(room.resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=1 << 20))
    monkeypatch.setattr(room.sys, "platform", "linux")
    assert room.room() == 1
    monkeypatch.setattr(room, "available", lambda: 3 << 30)
    assert room.room() == 4
    monkeypatch.setattr(room, "available", lambda: None)
    assert room.room() is None


@pytest.mark.parametrize(("copies", "at_once"), [(4, [4]), (2, [2, 2, 2, 2]), (1, [1, 1, 1, 1])])
def test_no_more_run_at_once_than_that(copies: int, at_once: list[int]) -> None:
    found, runs_at_once = Verification("train.py"), []
    processes: Any = SimpleNamespace(left=lambda: 60.0, count=2)
    program: Any = SimpleNamespace(target="train.py")
    runs: Any = Runs(program, Settings(copies=copies), processes, lambda what: None, found)
    search = Search(runs)
    search.compared.room = copies

    def together(order: list[Any]) -> list[Any]:
        runs_at_once.append(len(order))
        return [SimpleNamespace(found={"lengths": [10] * 9}) for _ in order]

    runs.run_together, runs.run = together, lambda kind, chosen, **more: together([chosen])[0]
    search.turn([frozenset({0}), frozenset({1})])
    assert runs_at_once == at_once
    assert as_object(found)["copies"] == copies
