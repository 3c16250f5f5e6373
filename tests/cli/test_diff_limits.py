"""The limits of `syncscope diff`: a gate fails what is surely longer or waits more often, and no more."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from cli.compared import FIXED, STEP, compared, gated, on
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands
from syncscope.model.source import Place
from syncscope.model.trace import Flag, Kind, Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device


def test_a_gate_fails_where_a_step_is_surely_longer_and_names_the_lines(tmp_path):
    slow, fast = (Device().run([step] * 6)[0] for step in (STEP, FIXED))
    code, said = gated(tmp_path, fast, slow, "--max-slowdown", "5%")
    assert code == 1
    assert re.match(r"a step is 8\d\.\d % longer \(\d+\.\d to \d+\.\d %\), more than the 5 % allowed:\n", said), said
    assert "  train.py:57: item: +1 per step" in said
    assert gated(tmp_path, fast, slow, "--max-slowdown", "95%") == (0, "")
    assert gated(tmp_path, slow, fast, "--max-slowdown", "0%") == (0, "")
    assert gated(tmp_path, slow, slow, "--max-slowdown", "0%", "--max-new-syncs", "0") == (0, "")


def test_a_step_may_be_allowed_more_than_to_take_twice_as_long_and_the_limit_is_told_as_it_was_typed(tmp_path):
    before, after = (Device().run([step] * 6)[0] for step in (STEP, [("launch", 0, 50_000_000), *STEP[1:]]))
    for limit in ("0.125%", "37.5%", "100%"):
        code, said = gated(tmp_path, before, after, "--max-slowdown", limit)
        assert code == 1, said
        assert f"more than the {limit.removesuffix('%')} % allowed" in said
    assert gated(tmp_path, before, after, "--max-slowdown", "900%") == (0, "")
    for no in ("inf", "nan", "-1%"):
        refused = CliRunner().invoke(commands, ["diff", "one", "two", "--max-slowdown", no])
        assert "is no percentage of 0 or more" in refused.output
    refused = CliRunner().invoke(commands, ["ranks", ".", "--max-saving", "101%"])
    assert "is no percentage from 0 to 100" in refused.output


def test_a_gate_says_where_no_line_made_a_step_longer(tmp_path):
    larger = [("launch", 0, 10_000_000), *STEP[1:]]
    before, after = (Device().run([step] * 6)[0] for step in (STEP, larger))
    code, said = gated(tmp_path, before, after, "--max-slowdown", "5%", "--max-new-syncs", "0")
    assert code == 1
    assert re.search(r"\n  slower: k\d+, 1.25 ms to 2.50 ms a step\n", said), said


def test_a_gate_counts_the_syncs_that_came(tmp_path):
    twice = [*STEP, ("read", 57, 0), ("read", 60, 0)]
    before, after = (Device().run([step] * 6)[0] for step in (STEP, twice))
    code, said = gated(tmp_path, before, after, "--max-new-syncs", "1")
    assert code == 1
    assert said.startswith("2 syncs per step are new, more than the 1 allowed:\n")
    assert "  train.py:57: item: +1 per step" in said
    assert "  train.py:60: item: +1 per step" in said
    assert gated(tmp_path, before, after, "--max-new-syncs", "2") == (0, "")
    assert gated(tmp_path, after, before, "--max-new-syncs", "0") == (0, "")


def test_what_a_gate_cannot_judge_is_no_pass(tmp_path):
    slow, fast = (Device().run([step] * 6)[0] for step in (STEP, FIXED))
    code, said = gated(tmp_path, on("Tesla V100", fast), on("NVIDIA A100", slow), "--max-slowdown", "5%")
    assert code == 2
    assert "--max-slowdown 5% cannot be judged: two different machines" in said
    unmarked = fast.take(fast.kind != Kind.STEP)
    code, said = gated(tmp_path, unmarked, slow, "--max-slowdown", "5%")
    assert code == 2
    assert "no limit can be judged: no step is marked in the first recording" in said
    assert gated(tmp_path, unmarked, slow) == (2, ""), "no limit, and the sentence stands in the output"


@pytest.mark.slow  # of three steps below, that are drawn
def test_steps_that_are_all_shorter_or_longer_are_judged_however_far_they_vary(shared, tmp_path):
    """The same training on a V100, without and with workers of the loader: 174 to 181 ms, and 124 to 164."""
    one, other = (
        kineto.read(shared / "traces" / f"v100_resnet50_train_workers{n}_6steps.pt.trace.json.gz") for n in (0, 4)
    )
    assert gated(tmp_path, one, other, "--max-slowdown", "0%") == (0, "")
    code, said = gated(tmp_path, other, one, "--max-slowdown", "0%")
    assert code == 1, "all are longer, and a faster host made none of them so"
    assert (
        "each of 4 steps is 6.4 % longer to 46.3 % longer than each of 4 before (had the machine been as fast" in said
    )
    assert "by chance that is so once in 70 times" in said


def test_steps_that_are_all_shorter_on_a_faster_host_may_hide_that_they_grew(tmp_path):
    program = [[*[("launch", 0, 100_000)] * 8, ("read", 57, 0)]] * 9
    before, after = Device(launch=9_000).run(program)[0], Device(launch=3_000).run([[*step[1:]] for step in program])[0]
    code, said = gated(tmp_path, before, after, "--max-slowdown", "5%")
    assert (code, "every counted step is shorter" in said) == (2, True), said
    assert gated(
        tmp_path,
        Device(launch=3_000).run(program)[0],
        Device(launch=9_000).run([[*step[4:]] for step in program])[0],
        "--max-slowdown",
        "5%",
    ) == (0, "")


def test_steps_that_are_all_shorter_by_more_than_a_faster_host_explains_pass(tmp_path):
    def steps(launch, lengths):
        return Device(launch=launch).run(
            [[*[("launch", 0, 1_000)] * 8, ("launch", 0, ms * 1_000_000)] for ms in lengths]
        )[0]

    before, after = steps(9_000, [35, 45, 38, 44, 36, 45, 37, 44]), steps(5_000, [10, 25, 11, 24, 10, 25, 12, 24])
    assert gated(tmp_path, before, after, "--max-slowdown", "5%") == (0, "")


def test_a_gate_does_not_pass_steps_that_vary_too_much_to_judge(tmp_path):
    """Steps of 5 to 15 ms, and of 7 to 17: the lower end of what they are longer by is below 0, the upper far above 1 %."""
    uneven = [[("launch", 0, (5 + n * 7 % 11) * 1_000_000), ("read", 57, 0)] for n in range(9)]
    longer = [[("launch", 0, (7 + n * 5 % 11) * 1_000_000), ("read", 57, 0)] for n in range(9)]
    before, after = Device().run(uneven)[0], Device().run(longer)[0]
    code, told = gated(tmp_path, before, after, "--max-slowdown", "1%")
    assert code == 2
    wide = "a step may be within the 1 % allowed, or longer than that by more than 10 % of a step"
    assert re.search(rf"cannot be judged: .* {wide}, for .* recording's steps is known to \d+% only\n", told), told
    assert (wanted := re.search(r"(\d+) steps of each would decide, .*--active \1`", told)), "of nine steps"
    code, told = gated(tmp_path, Device().run(uneven * 2)[0], Device().run(longer * 2)[0], "--max-slowdown", "1%")
    assert code == 2
    assert abs(int(re.search(r"--active (\d+)`", told)[1]) / int(wanted[1]) - 1) < 0.3, "of twice as many the same"
    more = [[*step, ("read", 60, 0)] for step in longer]
    code, told = gated(tmp_path, before, Device().run(more)[0], "--max-slowdown", "1%", "--max-new-syncs", "0")
    assert code == 1, "what is surely broken outranks what nobody can judge"
    assert "1 sync per step is new" in told
    assert "--max-slowdown 1% cannot be judged" in told
    _, said = compared(tmp_path, before, after)
    assert re.search(
        r"\+\d+\.\d%, within noise give or take, ms \(95 %\) [\d.]+ [\d.]+ -\d+\.\d to \+\d+\.\d %", said
    ), said


def of_few(before, after):
    """Two recordings with steps of so many ms."""
    return (
        Device().run([[("launch", 0, round(ms * 1_000_000)), ("read", 57, 0)] for ms in steps])[0]
        for steps in (before, after)
    )


def test_three_steps_of_each_decide_where_all_are_on_one_side_of_the_limit(tmp_path):
    """As torch.profiler's `active=3` leaves: in one of twenty orders all of one are above all of the other."""
    code, told = gated(tmp_path, *of_few((10, 10.2, 9.9), (11.5, 11.2, 12)), "--max-slowdown", "5%")
    assert code == 1
    assert re.match(
        r"each of 3 steps is 9\.\d % longer to 2\d\.\d % longer than each of 3 before, more than the 5 %", told
    ), told
    assert "by chance that is so once in 20 times:" in told
    assert gated(tmp_path, *of_few((10, 10.2, 9.9), (10.3, 9.9, 10)), "--max-slowdown", "5%") == (0, "")
    code, told = gated(tmp_path, *of_few((10, 10.2, 9.9), (10.3, 9.9, 12)), "--max-slowdown", "5%")
    assert code == 2
    assert re.search(r"is 2\.\d % shorter to 2\d\.\d % longer than each of 3 before: that may be above", told), told
    wanted = int(
        re.search(r"(\d+) steps of each would decide, if they vary as these do: `syncscope run --active \1`", told)[1]
    )
    assert 8 < wanted < 60


def test_so_many_steps_as_it_says_decide(tmp_path):
    wild = (10, 12, 11, 13, 10.5, 12.5)
    _, told = gated(tmp_path, *of_few(wild[:3], wild[3:]), "--max-slowdown", "5%")
    wanted = int(re.search(r"--active (\d+)`", told)[1])
    more = [wild[n * 5 % 6] for n in range(wanted)]
    assert gated(tmp_path, *of_few(more, more[1:] + more[:1]), "--max-slowdown", "5%")[0] == 0


def test_two_steps_of_each_decide_nothing(tmp_path):
    code, told = gated(tmp_path, *of_few((10, 10.1), (20, 20.1)), "--max-slowdown", "5%")
    assert code == 2
    assert "of 2 and 2 steps nobody can tell what chance is; three of each may be enough" in told
    assert "steps of each would decide" in told


WILD = [2, 90, 5, 40, 1, 70, 3]  # ms


def test_a_change_that_may_be_any_says_nothing(tmp_path):
    wild, longer = ([[("launch", 0, t * 1_000_000), ("read", 57, 0)] for t in ms] for ms in (WILD, [*WILD[3:], 9, 80]))
    _, said = compared(tmp_path, Device().run(wild)[0], Device().run(longer)[0])
    assert "%, which says nothing" in said, said
    assert "within noise" not in said
    assert re.search(r"give or take, ms \(95 %\) [\d.]+ [\d.]+ too noisy to tell", said), said
    assert "Too noisy to tell what became of a step: the middle of the second recording's steps is known to" in said


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_what_a_machine_of_another_speed_may_have_made_any_is_too_noisy_to_tell(tmp_path, form):
    """Two recordings of a host that was fifty times as fast in one may be 48 % apart, or 1,263 %: nobody can read that."""
    steps = [
        [*[("launch", 0, 1_000)] * 40, ("launch", 0, 10_000_000 + n * 7 % 11 * 20_000), ("read", 57, 0)]
        for n in range(9)
    ]
    before, after = (
        Trace.of(replace(e, duration=ns) if e.name == "cudaLaunchKernel" else e for e in Device().run(steps)[0])
        for ns in (4_000, 80)
    )
    _, said = compared(tmp_path, before, after, "--format", form)
    assert "too noisy to tell" in said, said
    assert "Too noisy to tell what became of a step: the host's calls took 0.02 times as long in the second" in said
    assert not re.search(r"[-+][\d.]+ to [-+][\d.]+ %", said), said


def test_steps_that_vary_a_little_pass_a_gate(tmp_path):
    """By 2 % of a step, without being longer: that is no reason not to judge."""
    steps = [[("launch", 0, 10_000_000 + n * 7 % 11 * 20_000), ("read", 57, 0)] for n in range(9)]
    others = [[("launch", 0, 10_000_000 + n * 5 % 11 * 20_000), ("read", 57, 0)] for n in range(9)]
    assert gated(tmp_path, Device().run(steps)[0], Device().run(others)[0], "--max-slowdown", "5%") == (0, "")


def test_steps_that_are_all_longer_are_not_called_noise_where_the_machine_was_another(tmp_path):
    """Calls of the driver take 2.5 times as long, and each step is longer."""
    lengths = [9_200_000, 9_200_000, 9_400_000, 9_300_000, 12_200_000, 9_000_000]
    steps = [[("launch", 0, 1_000), ("launch", 0, length), ("read", 57, 0)] for length in lengths]
    longer = [[("launch", 0, 1_000), ("launch", 0, 13_000_000), ("read", 57, 0)] for _ in range(6)]
    before, after = Device().run(steps)[0], Device().run(longer)[0]
    before, after = (
        Trace.of(
            replace(e, duration=length) if e.kind == Kind.CALL and not e.flags & Flag.BLOCKING else e for e in trace
        )
        for trace, length in ((before, 4_000), (after, 10_000))
    )
    _, said = compared(tmp_path, before, after)
    assert "within noise" not in said
    assert "not surely" in said, said
    assert re.search(r"Every counted step of the second is longer, 13\.\d to 13\.\d ms beside 9\.\d to 12\.\d", said), (
        said
    )
    assert "the host was slower in it." in said
    assert "that is not sure yet, for the host's calls took 2.50 times" in said
    code, told = gated(tmp_path, before, after, "--max-slowdown", "5%")
    assert code == 2
    assert "every counted step is longer" in told
    assert "times as long in the second, so the machine was not as fast in both" in told


def test_where_each_step_is_shorter_it_is_said_what_became_shorter_though_its_size_is_not_sure(tmp_path):
    """The host is faster, and does less between its waits, too."""
    waits, calls = [("launch", 0, 1_000), ("launch", 0, 9_000_000), ("read", 57, 0)], (10_000, 4_000)
    loads = Device().run([[*waits, ("work", 9_000_000 + n % 3 * 900_000)] for n in range(8)])[0]
    none = Device().run([[*waits, ("work", 2_000_000 + n % 3 * 900_000)] for n in range(8)])[0]
    before, after = (
        Trace.of(
            replace(e, duration=length) if e.kind == Kind.CALL and not e.flags & Flag.BLOCKING else e for e in trace
        )
        for trace, length in zip((loads, none), calls, strict=True)
    )
    _, said = compared(tmp_path, before, after)
    assert "Every counted step of the second is shorter" in said
    assert (
        "What differs of where a step goes, ms of the first and of the second: idle: the host had waited 9.00" in said
    )


def test_calls_shorter_than_the_clock_can_tell_hide_no_step_that_is_longer(tmp_path):
    """Of a clock of whole microseconds: 0 in one recording and 1 in the other, once for seven launches of 9."""

    def recorded_with(step, question):
        steps = [[*[("launch", 0, 1_000)] * 13, ("launch", 0, step), ("read", 57, 0)] for _ in range(8)]
        trace = Device(launch=9_000).run(steps)[0]
        launches = [e for e in trace if e.kind == Kind.CALL and not e.flags & Flag.BLOCKING]
        asked = [
            replace(e, name="cudaOccupancyMaxActiveBlocks", duration=question, correlation=-1) for e in launches[::7]
        ]
        return Trace.of(sorted([*trace, *asked], key=lambda e: (e.start, -e.duration)))

    before, as_long, longer = (
        recorded_with(10_000_000, 0),
        recorded_with(10_000_000, 1_000),
        recorded_with(13_000_000, 1_000),
    )
    assert gated(tmp_path, before, as_long, "--max-slowdown", "5%") == (0, "")
    for first in (before, as_long):
        code, told = gated(tmp_path, first, longer, "--max-slowdown", "5%")
        assert code == 1
        assert "more than the 5 % allowed" in told


def test_the_limits_of_a_diff_as_tests_say_what_is_broken_and_what_nobody_can_judge(tmp_path):
    twice = [*STEP, ("read", 57, 0)]
    before, after = (Device().run([step] * 6)[0] for step in (STEP, twice))
    for name, trace in (("before", before), ("after", after), ("none", Trace.of([]))):
        kineto.save(trace, tmp_path / f"{name}.json")

    def told(*names, limits=("--max-slowdown", "95%", "--max-new-syncs", "0")):
        args = ["diff", *(str(tmp_path / f"{name}.json") for name in names), *limits, "--format", "junit"]
        done = CliRunner().invoke(commands, args, standalone_mode=False)
        cases = ET.fromstring(done.stdout.encode()).iter("testcase") if done.exception is None else ()
        return done.return_value, {case.get("name"): [child.tag for child in case] for case in cases}

    assert told("before", "after") == (1, {"max-new-syncs": ["failure"], "max-slowdown": ["system-out"]})
    assert told("before", "before") == (0, {"max-new-syncs": ["system-out"], "max-slowdown": ["system-out"]})
    assert told("before", "none") == (2, {"max-new-syncs": ["error"], "max-slowdown": ["error"]})
    assert told("before", "after", limits=()) == (None, {}), "no test passes where no limit was given"


def test_what_a_limit_and_the_json_name_lies_in_this_folder_as_the_table_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recordings = []
    for step in (FIXED, STEP):
        trace = Device().run([step] * 6)[0]
        there = [Place(str(tmp_path / place.path), place.line) for place in trace.places]
        recordings.append(replace(trace, places=there))
    code, said = gated(tmp_path, *recordings, "--max-new-syncs", "0")
    assert code == 1
    assert "\n  train.py:57: item: +1 per step" in said
    shown = CliRunner().invoke(
        commands, ["diff", "one.json.gz", "two.json.gz", "--format", "json"], standalone_mode=False
    )
    assert [line["path"] for line in json.loads(shown.stdout)["new"]] == ["train.py"]


def test_of_a_limit_that_holds_it_is_said_what_was_found(tmp_path):
    """As `report` and `ranks` do: silence may be a limit that nobody looked at."""
    slow, fast = (Device().run([step] * 6)[0] for step in (STEP, FIXED))
    kineto.save(fast, tmp_path / "fast.json")
    kineto.save(slow, tmp_path / "slow.json")
    args = ["diff", *(str(tmp_path / f"{name}.json") for name in ("fast", "slow"))]
    done = CliRunner().invoke(commands, [*args, "--max-slowdown", "95%", "--max-new-syncs", "1"], standalone_mode=False)
    assert done.return_value == 0
    syncs, length = done.stderr.splitlines()
    assert syncs == "--max-new-syncs 1 holds: 1 sync per step is new"
    assert re.fullmatch(r"--max-slowdown 95% holds: a step is 8\d\.\d % longer \(\d+\.\d to \d+\.\d %\)", length)
