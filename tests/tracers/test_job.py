"""Which rank of a job a recording is of, and that no rank takes another's place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import syncscope
from syncscope import kineto
from syncscope.exporters import tensorboard
from syncscope.kineto import header
from syncscope.tracers import recovery
from syncscope.tracers.job import LAUNCHERS, job
from syncscope.tracers.session import Session

STEPS = """
import sys, syncscope
for _ in syncscope.steps(range(3)):
    pass
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for pair in LAUNCHERS:
        for name in pair:
            monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, {}),
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, {"rank": 3, "world_size": 8}),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, {"rank": 1, "world_size": 4}),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_NTASKS": "9"}, {"rank": 5, "world_size": 6}),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, {}),
        ({"RANK": "0"}, {}),
        ({"RANK": "x", "WORLD_SIZE": "2"}, {}),
        ({"RANK": "2", "WORLD_SIZE": "2"}, {}),
    ],
)
def test_a_launcher_says_which_rank_it_is(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], found: dict[str, int]
) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert job() == found


def test_a_process_group_says_it_though_it_is_taken_down_before_the_end(tmp_path: Path) -> None:
    distributed = pytest.importorskip("torch").distributed
    with syncscope.trace(tmp_path, whole=True) as trace:
        trace.step()
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        trace.step()
        distributed.destroy_process_group()
        trace.step()
    meta = kineto.read(trace.files[0]).meta
    assert (meta["rank"], meta["world_size"], meta["backend"]) == (0, 1, "gloo")
    assert header.rank(trace.files[0]) == (0, 1)


def test_ranks_that_run_beside_one_another_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    command = [sys.executable, "-m", "syncscope", "run", "-o", "runs", "--quiet", "train.py"]
    ranks = [
        subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
        for rank in (1, 0)
    ]
    assert [rank.wait(300) for rank in ranks] == [0, 0]
    found = {path.parent.name: header.rank(path) for path in (tmp_path / "runs").glob("*/*.pt.trace.json.gz")}
    assert found == {"train-rank0": (0, 2), "train-rank1": (1, 2)}


def test_no_rank_overwrites_the_file_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    path = tmp_path / "run.json.gz"
    for _ in range(2):  # each its own, from an earlier job, too
        for rank in (1, 0, 2):
            monkeypatch.setenv("RANK", str(rank))
            with syncscope.trace(path, whole=True) as trace:
                trace.step()
            assert header.rank(trace.files[0]) == (rank, 3)
        names = ["run-rank0.json.gz", "run-rank2.json.gz", "run.json.gz"]
        assert sorted(file.name for file in tmp_path.iterdir()) == names


def test_a_name_is_taken_once_however_many_ask_for_it(tmp_path: Path) -> None:
    (tmp_path / "plugins" / "profile" / "run-2").mkdir(parents=True)
    assert [tensorboard.claimed(tmp_path, "run") for _ in range(3)] == ["run", "run-3", "run-4"]


def test_a_killed_rank_leaves_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with Session(folder=tmp_path, whole=True, on_trace=lambda trace: False) as session:
        session.step()
    found = recovery.recover(tmp_path)
    assert found is not None
    assert (found.meta["rank"], found.meta["world_size"]) == (1, 2)
