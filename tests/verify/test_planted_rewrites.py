"""Wrong rewrites are refused, and right ones pass: a few of benchmarks/planted_rewrites.py, or all where time is no matter."""

import sys
from pathlib import Path

import pytest

from syncscope.verify.results import CHANGED

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run would import torch anew"),
    pytest.mark.xdist_group("runs of a program"),
    pytest.mark.usefixtures("imported_once"),
]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SOME = (
    "the meter counts batches in place of rows",
    "the largest of the last step only",
    "the average is the model itself",
    "keepdim is lost: every row times every other",
    "meters on the device",
    "averaged by lerp",
    "NaN is looked for in the end",
    "a count by the host's own sum",
)


def told(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = (), in_one: bool = False, varying: str = ""
) -> dict[str, tuple[bool, bool, str]]:
    """Of each rewrite whether it is right, whether it passed, and why, or why not."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import planted_rewrites

    chosen = [rewrite for rewrite in planted_rewrites.REWRITES if not names or rewrite.says in names]
    assert len(chosen) >= len(names)
    judged = planted_rewrites.judged(chosen, in_one=in_one, varying=varying, steps=12 if in_one else None)
    return {rewrite.says: (rewrite.is_right, values != CHANGED, why) for rewrite, values, why in judged}


def test_what_only_names_hold_tells_a_wrong_rewrite_from_a_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch, SOME)
    assert set(found) == set(SOME)
    assert {says: why for says, (is_right, passed, why) in found.items() if is_right != passed} == {}
    assert "of_loss" in found["the meter counts batches in place of rows"][2]


def test_where_sums_vary_the_same_steps_in_one_process_are_equal_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = "the average is the model itself", "NaN is looked for in the end"
    found = told(monkeypatch, (wrong, right), in_one=True, varying="unless-asked")
    assert found[right] == (True, True, "in one process")
    assert found[wrong][:2] == (False, False)


@pytest.mark.slow  # two more of those that the one below asks
def test_between_two_optimizers_no_graph_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maker's backward pass is still to come where the critic has stepped: the same steps begin behind both."""
    wrong, right = "one read stands for two", "detached before the call"
    found = told(monkeypatch, (wrong, right), in_one=True)
    assert found[right] == (True, True, "in one process")
    assert found[wrong][:2] == (False, False)


@pytest.mark.slow
def test_all_wrong_rewrites_are_refused_and_all_right_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch)
    assert sum(is_right for is_right, _, _ in found.values()) >= 30
    assert sum(not is_right for is_right, _, _ in found.values()) >= 30
    assert {says: why for says, (is_right, passed, why) in found.items() if is_right != passed} == {}
