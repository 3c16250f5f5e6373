"""What two runs have read, side by side: whether it is the same."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from syncscope.model.source import Place
from syncscope.verify.capture import digest, parameters, state
from syncscope.verify.counted import of_same_steps
from syncscope.verify.held import PYTHON, HeldNumber
from syncscope.verify.paired import LAST_BIT, NotedValue
from syncscope.verify.processes import RunResult
from syncscope.verify.request import PARAMETERS
from syncscope.verify.values import Difference, Values, difference, pieces, values_of

LINE = Place("train.py", 3)


def run(*values: object) -> Values:
    """A run that has read these, one after the other in its second step."""
    read = [NotedValue(1, *digest(np.asarray(value))) for value in values]
    return Values(3, [], {LINE: read}, [], [], [])


@pytest.mark.parametrize(
    ("size", "last", "by"), [(64, 2.0, 0.5), (65, 2.0, 0.5), (74, 11.0, 0.5), (1000, -1.0, LAST_BIT)]
)
def test_a_value_that_differs_in_its_last_number_only_is_not_the_same(size: int, last: float, by: float) -> None:
    one, other = np.ones(size), np.ones(size)
    other[-1] = last
    assert difference(run(one), run(other), *pieces({}, {})).reads == by
    assert difference(run(one), run(one), *pieces({}, {})).reads == 0.0


@pytest.mark.parametrize("others", [[0.5], [0.5, 0.4, 0.3, 0.3], []])
def test_another_number_of_losses_is_not_the_same(others: list[float]) -> None:
    one, other = (
        Values(3, [NotedValue(step, *digest(np.asarray(loss))) for step, loss in enumerate(losses)], {}, [], [], [])
        for losses in ([0.5, 0.4, 0.3], others)
    )
    apart = difference(one, other, *pieces({}, {}))
    assert (apart.losses, apart.where) == (np.inf, f"{len(others)} losses instead of 3")
    assert difference(one, one, *pieces({}, {})).largest == 0.0


def test_parameters_of_another_dtype_are_not_the_same(tmp_path: Path) -> None:
    """Those of bfloat16 that have become float32 hold the same numbers, until the next step rounds them."""
    torch = pytest.importorskip("torch")
    runs = []
    for dtype in (torch.bfloat16, torch.float32):
        weight = torch.nn.Parameter(torch.ones(3, dtype=dtype))
        folder = tmp_path / str(dtype)
        folder.mkdir()
        np.savez(folder / PARAMETERS, **dict(parameters([torch.optim.SGD([weight], 0.1)])))
        found: dict[str, Any] = {"steps": 3, "losses": [], "reads": [], "counts": []}
        runs.append(values_of(RunResult(folder, found)))
    apart = difference(runs[0], runs[1], *pieces({}, {}))
    assert (apart.parameters, apart.where) == (
        np.inf,
        "parameter 1, which is torch.float32 (3,) instead of torch.bfloat16 (3,)",
    )
    assert difference(runs[0], runs[0], *pieces({}, {})).parameters == 0.0


def test_waits_of_a_device_without_a_kernel_are_told_from_those_of_the_program() -> None:
    """BCELoss once cost three copies a step on `ocl`: fifteen of nineteen reads of a program that reads five values."""
    counts = {(Place("a.py", line), "ocl_fallback"): 6 for line in (9, 10, 11, 2)} | {(LINE, "item"): 2}
    waits = [{key: count // 2 for key, count in counts.items()}] * 3
    some, none = (Values(3, [], {}, each, [], []) for each in (waits, [{(LINE, "item"): 1}] * 3))
    said = "12 waits a step as written are not counted: ocl has no kernel for an operator at a.py:2, a.py:9, a.py:10"
    assert some.of_fallbacks() == f"{said} and 1 more; on CUDA the host does not wait there"
    assert none.of_fallbacks() == ""


def test_what_ocl_lacks_is_no_sync_of_a_step_and_what_waits_on_cuda_too_is() -> None:
    step = {(Place("a.py", 2), "ocl_fallback"): 3, (Place("a.py", 3), "bincount"): 1, (LINE, "item"): 2}
    assert of_same_steps([step] * 4, [{(LINE, "item"): 2}] * 4)[:2] == (3, 2)


def test_the_waits_that_are_never_answered_late_are_named() -> None:
    step = {(Place("a.py", 2), "cpu"): 2, (Place("a.py", 3), "bincount"): 1, (LINE, "item"): 2}
    some, none = (Values(3, [], {}, [each] * 3, [], []) for each in (step, {(LINE, "item"): 1}))
    stay = "these waits stayed: cpu at a.py:2 (2 a step), bincount at a.py:3 (1 a step)"
    assert some.stay() == f"only reads of single values were answered late; {stay}"
    assert none.stay() == ""


def test_beside_runs_that_have_nothing_in_common_no_value_is_a_change() -> None:
    """A program that diverges: of two runs as written one has other numbers, of the rewritten one some are NaN."""
    plain = pieces({}, {})
    noise, apart = difference(run(1.0), run(-1.0), *plain), difference(run(1.0), run(np.nan), *plain)
    assert noise.apart == ["numbers that are read"]
    assert apart.largest == np.inf
    assert apart.within(noise, 2.0)
    assert not apart.within(difference(run(1.0), run(1.5), *plain), 2.0)


def test_what_modules_hold_may_be_all_that_two_runs_do_not_have_in_common() -> None:
    """The running means of a generator that never settles: 1,877 times as large in the second run."""
    held = [
        Values(3, [], {}, [], [], [], {"norm.running_mean": [(str(mean), np.float32([mean]))]}) for mean in (0.01, 20.0)
    ]
    assert difference(held[0], held[1], *pieces({}, {})).apart == ["numbers that modules hold"]


def test_numbers_read_at_once_are_those_read_one_by_one() -> None:
    assert difference(run(1.5, 2), run([1.5, 2.0]), *pieces({}, {})).reads == 0.0


@pytest.mark.parametrize(
    ("before", "after", "by", "compared"),
    [
        ([True], [1.7429], 0.0, 0),  # `if losses[3] > t:` is gone, and the line after it is not
        ([17], [1.7429], 0.0, 0),
        ([True, 17, 1.5], [1.5 + 2**-22], 1.6e-7, 1),
        ([True, 17, 1.5], [3.0], 0.5, 1),  # the loss is what it is, whatever goes beside it
        ([1.5, True], [True, 3.0], 0.5, 2),
        ([17], [34.0], 0.5, 1),  # a count in another dtype
        ([1.5], [3.0], 0.5, 1),
    ],
)
def test_a_read_that_is_gone_is_not_the_next_one_that_remains(
    before: list[Any], after: list[Any], by: float, compared: int
) -> None:
    found = difference(run(*before), run(*after), *pieces({}, {}))
    assert (found.reads, found.compared) == (pytest.approx(by, rel=0.1), compared)


def test_reads_are_the_same_by_the_function_they_are_made_in() -> None:
    """Of a file in which functions have changed places, all of which is one piece of text."""

    def program(*read: tuple[str, float]) -> Values:
        values = [NotedValue(1, *digest(np.asarray(value)), function) for function, value in read]
        return Values(3, [], {LINE: values}, [], [], [])

    one = program(("accuracy", 0.75), ("clipped", 9.0), ("train", 1.5))
    for loss, by in ((1.5, 0.0), (3.0, 0.5)):
        other = program(("train", loss), ("accuracy", 0.75))
        found = difference(one, other, *pieces({}, {}))
        assert (found.reads, found.compared, found.read) == (by, 2, 3)


@pytest.mark.parametrize(("wrong", "compared"), [(0.0, 58), (0.5, 0)])
def test_numbers_of_several_lines_are_found_where_all_are_read_at_once(wrong: float, compared: int) -> None:
    """One of them a step later."""
    before, after = b"a = x.item()\nz.step()\nb = y.item()\n", b"z.step()\na, b = both.tolist()\n"

    def read(step: int, *values: float) -> NotedValue:
        return NotedValue(step, *digest(np.asarray(values if len(values) > 1 else values[0])))

    steps = range(30)
    first, second = Place("train.py", 1), Place("train.py", 3)
    one = Values(
        30, [], {first: [read(n, n + 0.25) for n in steps], second: [read(n, -n) for n in steps[1:]]}, [], [], []
    )
    at_once = [read(n, n - 0.75 + wrong * n, -n) for n in steps[1:]]
    other = Values(30, [], {Place("train.py", 2): at_once}, [], [], [])
    found = difference(one, other, *pieces({"train.py": before}, {"train.py": after}))
    assert (found.reads, found.compared, found.read) == (0.0, compared, 59)


def test_every_read_of_a_line_counts(tmp_path: Path) -> None:
    np.savez(tmp_path / PARAMETERS)
    step = [("train.py", 3, "item", 1), ("train.py", 3, "item", 1), ("train.py", 4, "tolist", 1)]
    found = {"steps": 12, "losses": [], "reads": [], "counts": [step] * 12}
    waits = values_of(RunResult(tmp_path, found)).waits
    assert of_same_steps(waits, waits)[:2] == (3, 3)


def test_a_loss_that_is_no_number_is_told_of() -> None:
    losses = [NotedValue(step, *digest(np.asarray(value))) for step, value in enumerate((0.5, np.nan, np.nan))]
    assert Values(3, losses, {}, [], [], []).of_nan().startswith("the loss is NaN in step 2,")
    assert Values(3, losses[:1], {}, [], [], []).of_nan() == ""


def test_what_modules_hold_beside_is_compared() -> None:
    """A version that left out the average of the weights was called equal."""
    torch = pytest.importorskip("torch")
    model, norm = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(5)
    optimizer = torch.optim.SGD([*model.parameters(), *norm.parameters()], 0.1)

    def now() -> Values:
        held: dict[str, Any] = defaultdict(list)
        for name, told, values in state([optimizer]):
            held[name].append((told, values.copy()))
        return Values(3, [], {}, [], [], [], held)

    before = now()
    assert "Linear.weight (2, 3)" not in before.state
    assert difference(before, now(), *pieces({}, {})).largest == 0
    norm(torch.ones(4, 5))
    apart = difference(before, now(), *pieces({}, {}))
    assert apart.state > 0
    assert apart.where.startswith("BatchNorm1d.")
    assert apart.within(apart, 1.0)
    assert not difference(before, before, *pieces({}, {})).largest
    assert not apart.within(difference(before, before, *pieces({}, {})), 2.0)


def test_a_sum_that_is_read_later_is_known_by_the_name_that_holds_it_as_written() -> None:
    """`total += loss.item()` in each step, and `total = float(total)` after each epoch, which is the same piece of text."""
    losses = [0.5, 0.25, 1.0, 2.0, 0.125, 0.75]
    total = [("train.py", "train: total")]
    place = Place("train.py", 7)

    def noted(numbers: dict[int, float], held: dict[int, float]) -> Values:
        reads = [NotedValue(step, *digest(np.array(number))) for step, number in numbers.items()]
        names = {total[0]: [HeldNumber((step, 0), PYTHON, number) for step, number in held.items()]}
        return Values(6, [], {place: reads}, [], [], [], held=names, moments=[(step, 0) for step in range(7)])

    sums = {step + 1: sum(losses[: step + 1]) for step in range(6)}
    one = noted(dict(enumerate(losses)), sums)
    itself = pieces({}, {})
    assert not difference(one, noted({2: sums[3], 5: sums[6]}, sums), *itself).largest
    assert difference(one, noted({2: 1.01 * sums[3], 5: sums[6]}, sums), *itself).largest > 0.3
    assert difference(one, noted({step: sums[step + 1] for step in range(6)}, sums), *itself).largest > 0.3


def test_a_refusal_names_the_values_that_are_beyond_rounding_and_how_far_that_carries_in_them() -> None:
    """What differs most may be far within: a loss of 9e-05 was refused beside reads, in which one bit carried 2."""
    apart = Difference(parameters=1e-3, losses=8.9e-5, reads=0.5, where="train.py:82")
    bit = Difference(parameters=1e-2, losses=1e-7, reads=2.3)
    assert not apart.within(bit, 48)
    assert apart.beyond(bit, 48) == ("losses", 8.9e-5, 1e-7)
