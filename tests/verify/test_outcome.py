"""What a verification says in the end, and its exit code: 0 a gain, 1 none or a refused fix, 3 not decided."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from syncscope.cli._verified import each, summary, verdict
from syncscope.cli._verified import values as told_of_values
from syncscope.cli.verify import finished
from syncscope.errors import UserError
from syncscope.verify.results import CHANGED, EQUAL, WITHIN, TriedFix, Verification, as_object
from syncscope.verify.timing import Ratio
from syncscope.verify.values import Difference

SURE, SLIGHT, OPEN, LONGER = (
    Ratio(0.9, 0.88, 0.92, 5), Ratio(0.99, 0.97, 1.01, 5), Ratio(0.96, 0.88, 1.05, 5), Ratio(1.1, 1.05, 1.15, 5)
)  # fmt: skip
FEW = Ratio(0.9, 0.85, 0.95, 2)
WORSE = Ratio(1.379, 0.992, 1.917, 5)
LIKELY = Ratio(0.98, 0.955, 1.005, 40)  # a gain of 2 %, of which more time would tell


@pytest.mark.parametrize(
    ("ratio", "values", "refused", "code", "said"),
    [
        (SURE, EQUAL, False, 0, "The step is 10.0% (8.0% to 12.0%) shorter"),
        (SURE, EQUAL, True, 1, "The step is 10.0%"),
        (SURE, CHANGED, False, 1, "The values changed"),
        (None, CHANGED, True, 1, "The values changed: that is another program."),
        (SLIGHT, EQUAL, False, 1, "No gain of more than 3.0%: "),
        (LIKELY, EQUAL, False, 3, "Nothing is decided: rewritten the step is 0.980 (0.955 to 1.005) times as long."),
        (LONGER, EQUAL, False, 1, "The step is longer"),
        (WORSE, EQUAL, False, 1, "No gain; the step is likely longer: 1.379 (0.992 to 1.917)."),
        (OPEN, EQUAL, False, 3, "Nothing is decided: rewritten the step is 0.960 (0.880 to 1.050) times as long."),
        (OPEN, EQUAL, True, 1, "A fix was refused, and of the others nothing is decided"),
        (FEW, EQUAL, False, 3, "Nothing is decided: the budget was spent after 2 turns of 3 at least."),
        (None, None, False, 3, "Nothing is decided: no step was timed before the end. The files are as they were."),
        (None, None, True, 1, "Every fix was refused."),
    ],
)
def test_a_spent_budget_is_told_from_a_program_without_a_gain(
    ratio: Ratio | None, values: str | None, refused: bool, code: int, said: str
) -> None:
    found = Verification("train.py", ratio=ratio, values=values, refused=refused)
    assert found.code == code
    assert verdict(found).startswith(said)
    assert as_object(found)["decided"] == (not said.startswith(("Nothing is decided", "A fix was refused, and")))


@pytest.mark.parametrize(
    ("same", "said"),
    [
        (
            Ratio(1.01, 0.89, 1.13, 9),
            "some 1.5 times as many steps would, if they vary as these did, or a quieter machine",
        ),
        (Ratio(0.98, 0.68, 1.28, 9), "some 9 times as many steps would"),
        (Ratio(1.0, 0.1, 1.9, 9), "no number of steps that anybody waits for would show it"),
        (Ratio(0.89, 0.84, 0.95, 9), "more steps would not show it: equal versions surely differ"),
    ],
)
def test_a_gain_that_two_equal_versions_may_differ_by_is_not_shown(same: Ratio, said: str) -> None:
    found = Verification("train.py", ratio=Ratio(0.9, 0.86, 0.94, 9), same=same, values=EQUAL)
    assert verdict(found).startswith("Nothing is decided: ")
    assert f"The 10.0% are not shown, for the same version twice may differ by as much, {same}: {said}" in verdict(
        found
    )
    assert dict(summary(found))["same version twice"] == f"{same}: it covers the ratio, and no gain is shown"
    assert found.code == 3
    shown = replace(found, same=Ratio(1.01, 0.96, 1.06, 9))
    assert verdict(shown).startswith("The step is 10.0% (6.0% to 14.0%) shorter")
    assert dict(summary(shown))["same version twice"] == str(shown.same)


@pytest.mark.parametrize(
    ("ratio", "same", "said"),
    [
        (Ratio(0.859, 0.807, 0.914, 6), Ratio(0.975, 0.0, math.inf, 4), "so few turns set no bound to how far"),
        (Ratio(0.775, 0.539, 1.115, 8), Ratio(1.3, 1.013, 1.669, 8), "it is as far from 1 as the ratio, and"),
    ],
)
def test_no_interval_is_said_to_cover_a_ratio_that_is_not_in_it(ratio: Ratio, same: Ratio, said: str) -> None:
    found = Verification("train.py", ratio=ratio, same=same, values=EQUAL)
    assert dict(summary(found))["same version twice"].startswith(f"{same}: {said}")
    assert ("more turns would bound that" in verdict(found)) == (same.turns == 4)


def test_an_open_ratio_is_told_in_words_with_the_budget_that_would_decide() -> None:
    found = Verification("train.py", ratio=OPEN, values=EQUAL, enough=12)
    assert verdict(found).endswith(
        "It may be 12.0% shorter, it may be 5.0% longer: in 95 of 100 cases the truth lies between. "
        "`--budget 12m` would likely decide."
    )
    assert as_object(found)["enough_minutes"] == 12
    assert as_object(replace(found, ratio=SURE))["enough_minutes"] is None


def test_a_fix_that_stays_because_all_together_gain_is_not_called_kept() -> None:
    finding: Any = SimpleNamespace(
        rule="host-read", standing="safe", safety=SimpleNamespace(value="safe"), title="", changes=""
    )
    fixes = [TriedFix("train.py", line, finding, finding, kept=True, values=EQUAL) for line in (1, 2, 3)]
    fixes[0].without, fixes[1].without = LONGER, OPEN
    found = Verification("train.py", ratio=SURE, values=EQUAL, fixes=fixes)
    assert [fix["stands"] for fix in as_object(found)["fixes"]] == ["kept", "unproved", "unproved"]
    found.fixes = fixes[1:2]  # the gain is that of the one alone
    assert [fix["stands"] for fix in as_object(found)["fixes"]] == ["kept"]


@pytest.mark.parametrize("ratio", [SURE, SLIGHT, OPEN, LONGER])
def test_of_processor_time_it_is_said_that_no_wait_is_proved(ratio: Ratio) -> None:
    found = Verification("train.py", ratio=ratio, values=EQUAL, by_processors=True, reads_before=33.7, reads_after=4.67)
    assert verdict(found).endswith(
        "Of 33.7 waits a step 4.67 are left. What they cost is not proved: processor time has no waits in it. On a machine "
        "with nothing else to do the same command takes the clock's time."
    )
    assert "not proved" not in verdict(replace(found, by_processors=False))


def test_where_a_forecast_did_not_come_true_it_is_said_which_figure_to_quote() -> None:
    found = Verification("train.py", ratio=SURE, values=EQUAL, predicted=Ratio(0.5, 0.49, 0.51, 1))
    assert dict(summary(found))["predicted"].endswith("that did not come true; quote what was measured")


@pytest.mark.parametrize("turns", [1, 5])
def test_a_ratio_of_one_turn_is_no_figure_of_a_fix(turns: int) -> None:
    finding: Any = SimpleNamespace(
        rule="host-read", column=1, standing="safe", safety=SimpleNamespace(value="safe"), title=""
    )
    fix = TriedFix("train.py", 3, finding, finding, values=EQUAL, ratio=Ratio(1.3, 1.0, 1.6, turns))
    console = Console(width=200)
    with console.capture() as told:
        console.print(each(Verification("train.py", fixes=[fix])))
    assert ("by itself a step is 1.300" in told.get()) == (turns == 5)


def test_equal_values_are_told_of_the_steps_that_were_compared() -> None:
    finding: Any = SimpleNamespace(rule="host-read")
    fixes = [TriedFix("train.py", 3, finding, finding, values=EQUAL, kept=True)]
    found = Verification("train.py", ratio=SURE, values=EQUAL, steps=40, fewer_steps=7, fixes=fixes)
    assert verdict(found).endswith("the values are the same, bit for bit, in the 7 steps compared.")


@pytest.mark.parametrize(
    ("compared", "read", "said"),
    [
        (0, 0, "parameters, buffers, losses"),
        (0, 1368, "parameters, buffers, losses; of 1368 values that it reads as written it reads none here any more"),
        (8, 12, "losses and 8 of 12 values that it reads as written; the other 4 are read later, or not at all"),
        (12, 12, "losses and 12 of 12 values that it reads as written"),
    ],
)
def test_how_many_values_that_are_read_were_compared_is_told(compared: int, read: int, said: str) -> None:
    found = Verification("train.py", values=EQUAL, difference=Difference(compared=compared, read=read))
    assert told_of_values(found).endswith(said)


def test_one_turn_has_no_interval() -> None:
    once = Ratio(1.01, 1.01, 1.01, 1)
    said = as_object(Verification("train.py", ratio=once, same=once))
    assert (said["ratio"], said["low"], said["high"]) == (1.01, None, None)
    assert (said["same_ratio"], said["same_low"], said["same_high"]) == (1.01, None, None)


def test_answered_late_it_is_the_same() -> None:
    for ratio, code, said in (
        (SURE, 0, "Without these waits the step is 10.0%"),
        (SLIGHT, 1, "Without these waits the step is no shorter"),
        (LONGER, 1, "Answered late the step is longer"),
        (OPEN, 3, "Nothing is decided: answered late"),
    ):
        found = Verification("train.py", ratio=ratio, stale=True)
        assert found.code == code
        assert verdict(found).startswith(said)


@pytest.mark.parametrize("drift", [Ratio(0.97, 0.95, 0.99, 9), Ratio(1.03, 1.01, 1.05, 9)])
def test_waits_do_not_cost_nothing_where_equal_steps_differ(drift: Ratio) -> None:
    slight = Verification("train.py", ratio=SLIGHT, same=drift, stale=True)
    assert (slight.code, slight.decided) == (3, False)
    said = f"it is {drift.ratio:.3f} ({drift.low:.3f} to {drift.high:.3f}): steps change by themselves here."
    assert verdict(slight).startswith("Nothing is decided: answered late")
    assert verdict(slight).endswith(said)
    assert Verification("train.py", ratio=SURE, same=drift, stale=True).code == 0  # more than they differ by
    assert Verification("train.py", ratio=SLIGHT, same=SLIGHT, stale=True).code == 1


def test_one_refused_fix_is_not_all_of_them() -> None:
    finding: Any = SimpleNamespace(rule="host-read")
    refused, open_ = (TriedFix("a.py", 1, finding, finding, values=values) for values in (CHANGED, WITHIN))
    some = Verification("train.py", refused=True, fixes=[refused, open_])
    assert verdict(some).startswith(
        "A fix was refused, and of the others nothing is decided: no step was timed before the end."
    )
    assert verdict(Verification("train.py", refused=True, fixes=[refused])).startswith("Every fix was refused.")


def test_there_is_no_gain_that_no_fix_gives() -> None:
    finding: Any = SimpleNamespace(rule="host-read")
    fix = TriedFix("a.py", 1, finding, finding, values=EQUAL)
    found = Verification("train.py", ratio=SURE, values=EQUAL, fixes=[fix])
    assert (found.code, found.decided) == (3, False)
    fix.kept = True
    assert (found.code, found.decided) == (0, True)


def test_nothing_is_written_where_one_of_the_files_changed_meanwhile(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_bytes(b"as it was")
    other.write_bytes(b"edited")
    files = {str(path): (b"as it was", b"mended") for path in (one, other)}
    said = {"format_": "json", "output": None, "write": True}
    with pytest.raises(UserError, match="changed while it was tried: nothing is written"):
        finished(Verification("train.py", files=files, runs=1), said)
    assert one.read_bytes() == b"as it was"


def test_on_a_processor_what_is_known_is_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("a\n")
    changed = {str((tmp_path / "train.py").resolve()): (b"a\n", b"b\n")}
    found = Verification(
        "train.py", device="ocl", ratio=OPEN, same=Ratio(1.0, 0.87, 1.15, 5), values=EQUAL,
        reads_before=5.55, reads_after=1.55, open_files=changed, difference=Difference(), compared_steps=8,
    )  # fmt: skip
    said = "of 5.55 waits a step 1.55 are left, and values are equal, bit for bit, in the 8 steps compared; time is not"
    assert f"{said} decidable here (noise 14%): a quiet GPU" in verdict(found)
    one = replace(
        found, ratio=Ratio(1.126, 1.126, 1.126, 1), same=Ratio(0.82, 0.82, 0.82, 1), before=104.6e6, after=106.7e6
    )
    assert "not decidable here (1 turn, and 3 are the least; a larger --budget holds more): a quiet GPU" in verdict(one)
    assert "noise" not in verdict(one)
    assert (
        "medians of all turns, between which the machine changed; the ratio compares within each"
        in dict(summary(one))["step"]
    )
    assert "medians" not in dict(summary(replace(one, after=104.6e6 * 1.126)))["step"]
    options = {"format_": "terminal", "output": "fixes.patch", "write": True, "quiet": True}
    assert finished(found, options) == 3
    assert "-a\n+b\n" in (tmp_path / "fixes.patch").read_text()
    assert (tmp_path / "train.py").read_text() == "a\n"
    assert "--write does not make it" in capsys.readouterr().out
    assert as_object(found)["patch_is_open"]
    for decided in ({"device": "cuda"}, {"ratio": SURE, "same": Ratio(1.0, 0.97, 1.03, 5)}, {"refused": True}):
        assert not replace(found, **decided).is_open


def test_what_is_open_is_in_the_patch_and_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("a\n")
    changed = {str((tmp_path / "train.py").resolve()): (b"a\n", b"b\n")}
    finding: Any = SimpleNamespace(
        rule="host-read", column=1, standing="safe", safety=SimpleNamespace(value="safe"), title="", changes=""
    )
    fixes = [TriedFix("train.py", line, finding, finding, good=line == 2, values=EQUAL) for line in (1, 2)]
    found = Verification(
        "train.py", device="cuda", interrupted=True, runs=3, steps=12, values=EQUAL, difference=Difference(),
        open_files=changed, fixes=fixes,
    )  # fmt: skip
    assert finished(found, {"format_": "terminal", "output": None, "write": True}) == 130
    told = capsys.readouterr()
    assert [line.split("  ")[0] for line in told.out.splitlines() if "train.py:" in line] == ["open", "left out"]
    assert "the fixes that are open change no value" in " ".join(told.out.split())  # however wide the terminal is
    assert "-a\n+b\n" in told.out
    assert "before anything was known" not in told.err
    assert (tmp_path / "train.py").read_text() == "a\n"
    fixes[1].kept, found.files, found.open_files = True, changed, {}
    assert [fix["stands"] for fix in as_object(found)["fixes"]] == ["left out", "kept"]


def test_a_run_that_did_not_come_to_its_end_has_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    finished(
        Verification("train.py", runs=1, interrupted=True), {"format_": "terminal", "output": None, "write": False}
    )
    told = capsys.readouterr()
    assert "1 whose steps were not all made" in " ".join(told.out.split())
    assert "interrupted before anything was known" in told.err


def test_values_that_the_end_left_unknown_are_told_from_those_of_which_nothing_stays() -> None:
    found = Verification("train.py", spent={"values": 45.4})
    assert told_of_values(found) == "not known: the end came before all was compared; 45 s went to it"
    assert told_of_values(Verification("train.py", refused=True)) == "nothing was compared that stays"


def test_how_far_values_are_apart_is_said_where_the_end_came_before_they_were_judged() -> None:
    """A version that was plainly another had *values not known* at the end of a minute."""
    found = Verification("train.py", difference=Difference(losses=0.027, where="train.py:9"))
    said = "differ by 2.7e-02, most at train.py:9; the end came before it was known whether rounding carries as far"
    assert dict(summary(found))["values"] == said
