"""Which of several fixes stay, by drawn times: what gains does, chance does not, and a spent budget keeps what is known."""

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.verify.processes import TimeIsUpError
from syncscope.verify.results import EQUAL, WITHIN, TriedFix, Verification
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.search import Search
from syncscope.verify.smallest import Fixes
from syncscope.verify.spent import Seconds
from syncscope.verify.timing import Ratio
from syncscope.verify.values import Difference

BUDGET = 100.0


class TimeIsUp(Exception):
    pass


def tried(
    worth: dict[int, float],
    runs: int,
    spread: float,
    seed: int,
    order: list[frozenset[int]] | None = None,
    warned: list[str] | None = None,
) -> Verification:
    """Four fixes, of which some shorten the step by a part of it; the budget holds so many runs, whose steps are spread.

    What is timed comes into `order`, what is said at once into `warned`.
    """
    draw = random.Random(seed)
    processes: Any = SimpleNamespace(count=0, importing=0.0, starting=0.0, changed={})
    processes.warn = ([] if warned is None else warned).append
    processes.left = lambda: BUDGET * (1 - processes.count / runs)
    found = Verification("train.py", values=EQUAL)
    program: Any = SimpleNamespace(target="train.py")
    search: Any = Search(Runs(program, Settings(BUDGET), processes, lambda _: None, found))
    plan: Any = SimpleNamespace(closed=frozenset, version=lambda chosen: {"train.py": repr(sorted(chosen)).encode()})
    plan.candidates = [SimpleNamespace(needs=frozenset(), path="train.py", line=n) for n in range(4)]
    plan.before, plan.leaves = {"train.py": b""}, sorted
    search.runs.plan = plan

    def times_of(turn: list[frozenset[int]]) -> dict[frozenset[int], float]:
        processes.count += len(turn)
        if order is not None:
            order.extend(turn)
        if processes.left() < 0:
            raise TimeIsUp
        return {chosen: draw.gauss(1 - sum(worth.get(n, 0) for n in chosen), spread) for chosen in turn}

    search._times_of, search.compared.judge = times_of, lambda *_: (EQUAL, "", None)
    search.compared.waits_at = lambda _, lines: 10 * (lines.start == 2) + 1  # line 2 waits most
    search.budget.runs_left = lambda part: (part - search.budget.spent()) * runs
    fixes: Any = Fixes(search)
    fixes.plan, fixes._judge = plan, lambda _: (EQUAL, "", None)
    for number in range(4):
        finding: Any = SimpleNamespace(rule="host-read", end_line=number)
        fixes.tried[number] = TriedFix("train.py", number, finding, finding, values=EQUAL)
    found.fixes = list(fixes.tried.values())
    try:
        fixes.choose(range(4), None)
        fixes._tell()
    except TimeIsUp:
        fixes._cut_short()
    return found


def test_what_gains_is_kept_alone() -> None:
    found = tried({2: 0.1}, runs=200, spread=0.01, seed=0)
    assert [fix.kept for fix in found.fixes] == [False, False, True, False]
    assert found.code == 0


def test_that_all_together_gain_is_said_as_soon_as_it_is_known() -> None:
    """Which of them it takes is another question, and takes longer; of what gives nothing no word comes."""
    said: list[str] = []
    found = tried({1: 0.1, 2: 0.1}, runs=200, spread=0.01, seed=0, warned=said)
    assert [fix.kept for fix in found.fixes] == [False, True, True, False]
    assert len(said) == 1
    assert said[0].startswith("decided: all 4 fixes together gain, 0.")
    said.clear()
    tried({}, runs=200, spread=0.01, seed=0, warned=said)
    assert not any("decided" in one for one in said)


def test_the_best_of_several_that_give_nothing_is_seldom_a_gain() -> None:
    found = [tried({}, runs=150, spread=0.01, seed=seed) for seed in range(60)]
    assert (
        sum(one.code == 0 for one in found) <= 4
    )  # 3 of 60; 9 without turns that did not choose it, 16 with narrow intervals, too


@pytest.mark.parametrize(("runs", "timed"), [(15, set()), (22, {2}), (27, {0, 2}), (200, {0, 1, 2, 3})])
def test_what_waits_most_is_timed_by_itself_where_the_budget_does_not_hold_all(runs: int, timed: set[int]) -> None:
    order: list[frozenset[int]] = []
    tried({2: 0.1}, runs, spread=0.003, seed=0, order=order)
    until = next((at for at, chosen in enumerate(order) if len(chosen) == 3), len(order))  # what is left out comes then
    assert set().union(*(chosen for chosen in order[:until] if len(chosen) == 1)) - {-1, -2, -3} == timed


@pytest.mark.parametrize("runs", [20, 30, 40, 60])
def test_there_is_no_gain_without_the_fixes_that_give_it(runs: int) -> None:
    for seed in range(10):
        found = tried({1: 0.1}, runs, spread=0.02, seed=seed)
        assert (found.code == 0) == bool(found.files) == any(fix.kept for fix in found.fixes)
        assert not any("does not gain" in fix.why for fix in found.fixes if fix.ratio and fix.ratio.half > 0.05)


def test_an_interval_for_one_of_many_is_wider() -> None:
    one = Ratio(0.9, 0.81, 1.0, 9)
    assert one.one_of(1) == one
    assert one.one_of(8).low == pytest.approx(0.9 * 0.9**1.395, rel=1e-3)
    assert one.one_of(8).high > 1.03


def test_what_is_known_to_be_equal_is_timed_before_the_others_are_compared_for_all_the_time_there_is() -> None:
    """Four minutes went to values, and no step was timed."""
    left = BUDGET
    processes: Any = SimpleNamespace(left=lambda: left)
    search: Any = Search(Runs(SimpleNamespace(), Settings(BUDGET), processes, lambda _: None, Verification("train.py")))
    fixes: Any = Fixes(search)
    fixes.plan = SimpleNamespace(closed=frozenset, candidates=[SimpleNamespace(needs=(), number=n) for n in range(4)])
    fixes.tried = {
        n: SimpleNamespace(why="", values=None, path="train.py", line=n, finding=SimpleNamespace(rule=""))
        for n in range(4)
    }
    fixes._equal_together, judged = list, []

    def compare(_: object) -> None:
        search.compared.beside = {frozenset({n}): Difference(reads=n % 3 and 1e-7) for n in range(4)}

    def judge(chosen: frozenset[int]) -> tuple[str, str, Difference]:
        nonlocal left
        judged.extend(chosen)
        left -= 0.6 * BUDGET
        return WITHIN, "", Difference()

    search.compared.compare, fixes._judge = compare, judge
    assert (fixes._good(), judged) == ([0, 3, 1], [1])
    assert "not compared" in fixes.tried[2].why


def test_no_run_is_begun_that_cannot_end_within_the_budget() -> None:
    left = 100.0
    processes: Any = SimpleNamespace(left=lambda: left, count=1, importing=0.0, starting=0.0, remains=(), heard_by="")
    processes.spent, processes.run = Seconds(), lambda *_: time.sleep(0.02)
    runs = Runs(SimpleNamespace(), Settings(BUDGET), processes, lambda _: None, Verification("train.py"))
    runs.run("values", frozenset(), steps=12)
    left = 0.01
    with pytest.raises(TimeIsUpError):
        runs.run("values", frozenset(), steps=12)
    runs.run("values", frozenset(), steps=2)
