"""By the machine's own clock, whatever else it does: how long steps take may be left open, what they compute is told."""

from pathlib import Path

import pytest
from verify import test_in_turns, test_try_in_the_run
from verify.slow_device import REAL
from warm import Python

pytest.importorskip("torch")
TRAIN = test_in_turns.TRAIN
pytestmark = [pytest.mark.xdist_group("runs of a program"), pytest.mark.usefixtures("project")]


@pytest.mark.usefixtures("imported_once")
def test_a_gain_is_found_or_left_open_in_one_process(project: Path, library: Path) -> None:
    library.write_text(REAL)
    code, found = test_in_turns.verified("--budget=100s")
    assert (found["way"], found["values"]) == ("one process", "equal")
    assert code == (3 if not found["decided"] else 0 if found["high"] < 1 else 1)
    assert 0 < found["low"] <= found["ratio"] <= found["high"]
    assert found["patch_is_open"] == (code == 3)
    assert (project / "train.py").read_text() == TRAIN


@pytest.mark.slow  # `test_try_in_the_run.py` asks it by a drawn clock
def test_a_run_in_which_fixes_are_tried_goes_on_bit_for_bit(project: Path, library: Path, forked: Python) -> None:
    library.write_text(REAL)
    program = test_try_in_the_run.TRAIN.replace("LOOP", test_try_in_the_run.OVER.strip())
    (project / "train.py").write_text(program)
    expected, _ = test_try_in_the_run.ran(forked)
    tried, _ = test_try_in_the_run.ran(forked, *test_try_in_the_run.TRIES, "--try-budget=100s")
    assert tried == expected
    (fix,) = [fix for fix in test_try_in_the_run.result()["fixes"] if fix["rule"] == "host-read"]
    assert fix["values"] == "equal"
    assert not fix["kept"] or fix["low"] <= fix["ratio"] <= fix["high"] < 1
