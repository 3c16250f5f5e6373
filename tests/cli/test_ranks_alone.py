"""Limits of a folder in which ranks of a job lie that no job is made of, as something else lies beside them."""

import re

import pytest
from cli.recorded import moved, outcome, ranks, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands

WIDE = ("--max-syncs-per-step", "5")


@pytest.fixture
def beside(folder):
    """A recording of another program, which is of no job."""
    (folder / "runs").mkdir()
    kineto.save(recording("other.py"), folder / "runs" / "other.json")
    return folder / "runs"


@pytest.mark.parametrize("format_", ["terminal", "junit", "github", "json"])
def test_no_limit_holds_of_the_ranks_that_are_here_where_one_is_missing_and_another_recording_lies_beside(
    beside, format_
):
    ranks(beside, (0, 1, 3), world=4)
    code, _, err = outcome("runs", *WIDE, "--format", format_)
    assert code == 2
    assert "3 of 4 ranks are here; missing: 2" in err
    assert "limits: 3 not judged, 1 held" in err


def test_one_rank_alone_in_a_folder_is_not_the_job_that_it_says_it_is_of(folder):
    ranks(folder / "runs", (0,), world=8)
    code, _, err = outcome("runs", *WIDE)
    assert code == 2
    assert "1 of 8 ranks is here; missing: 1, 2, 3, 4, 5, 6, 7" in err
    assert outcome("runs")[0] == 0, "nobody asked whether anything holds"


def test_ranks_with_a_folder_each_are_counted_together(beside):
    ranks(beside / "r0", (0,), world=3)
    kineto.save(recording("other.py"), beside / "r0" / "other.json")
    ranks(beside / "r1", (1,), world=3)
    code, _, err = outcome("runs", *WIDE)
    assert code == 2
    assert "2 of 3 ranks are here; missing: 2" in err


def test_of_several_folders_each_rank_that_is_missing_counts(folder):
    ranks(folder / "one", (0, 1), world=2)
    ranks(folder / "two", (0, 2), world=3)
    code, _, err = outcome("one", "two", *WIDE)
    assert code == 2
    assert "2 of 3 ranks are here; missing: 1" in err


def test_a_rank_that_is_there_twice_leaves_open_which_are_of_one_job(folder):
    ranks(folder / "runs", (0, 1, 2), world=3)
    kineto.save(moved(recording("train.py"), rank=1, world_size=3), folder / "runs" / "again.json")
    code, _, err = outcome("runs", *WIDE)
    assert code == 2
    assert re.search(r"which recordings are of one job is not known: of rank 1 there are 2, of rank \d 1", err)


def test_a_limit_that_one_of_them_breaks_is_broken(beside):
    ranks(beside, (0, 1, 3), world=4)
    assert outcome("runs", "--max-syncs-per-step", "0.5")[0] == 1


def test_all_ranks_beside_another_recording_are_held_each_alone(beside):
    ranks(beside, (0, 1))
    code, _, err = outcome("runs", *WIDE)
    assert code == 0
    assert "limits: 3 held" in err


def test_a_rank_that_is_named_itself_is_held_alone(folder):
    ranks(folder / "runs", (0,), world=8)
    assert outcome("runs/worker0.pt.trace.json", *WIDE)[0] == 0


def test_a_folder_with_one_rank_of_several_lets_no_limit_of_a_diff_pass(folder):
    ranks(folder / "one", (0,), world=2)
    ranks(folder / "two", (0,), world=2)
    asked = diff("one", "two", "--max-new-syncs", "0")
    assert asked.return_value == 2
    assert "1 of 2 ranks is here; missing: 1" in asked.stderr
    assert diff("one", "two").return_value == 0, "nobody asked whether anything holds"
    assert diff("one", "two/worker0.pt.trace.json", "--max-new-syncs", "0").return_value == 0


def diff(*args):
    return CliRunner().invoke(commands, ["diff", *args], standalone_mode=False)
