"""What names hold in two runs, side by side: sums that are lost, reads that are gone, and what only comes later."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from calls import lines_run

from syncscope.verify.accumulating import adds_up
from syncscope.verify.held import END, MOST, PYTHON, TENSOR, HeldNumber, NamesHeld, held_of, names_apart

torch = pytest.importorskip("torch")
STEPS = 8
NAME = ("train.py", "<module>: total")


def held(numbers, by=PYTHON, place=0):
    """A name that holds these, one a step, from this place of the step on."""
    return {NAME: [HeldNumber((step, place), by, number) for step, number in enumerate(numbers)]}


MOMENTS = [(step, place) for step in range(STEPS) for place in (0, END)]
SUMS = [step * (step + 1) / 2 for step in range(STEPS)]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (held(SUMS), True),
        (held(SUMS, TENSOR), True),
        (held(SUMS, place=END), True),  # read behind the backward pass
        (held([0.0, *SUMS[:-1]]), True),  # read behind the step: in the next one, as seen from here
        (held([0.0, 0.0, *SUMS[:-2]]), False),
        (held(range(STEPS)), False),
        (held([0.0] * STEPS), False),
        (held([sum + 1e-3 for sum in SUMS]), False),
    ],
)
def test_a_name_may_hold_its_number_as_a_tensor_and_later_and_no_other(other, is_same) -> None:
    assert (names_apart(held(SUMS), other, MOMENTS)[NAME] == 0) == is_same


PROGRAM = """
class Meter:
    def update(self, value):
        self.sum += value
        self.last = value

def train(loader):
    total, history, best, row = 0.0, [], 1e9, {}
    for step, x in enumerate(loader):
        d_x = x.item()
        row["loss"] = d_x
        total += d_x
        history.append(d_x)
        if d_y < best:
            best = d_y
        largest = max(largest, x)
        print(d_x)
"""


@pytest.mark.parametrize(
    ("name", "adds"),
    [
        ("total", True), ("history[3]", True), ("history)", True), ("best", True), ("largest", True),
        ("meter.sum", True), ("d_x", False), ("row['loss']", False), ("meter.last", False),
    ],
)  # fmt: skip
def test_names_that_add_up_are_told_from_those_that_hold_the_last_value(tmp_path: Path, name: str, adds: bool) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    assert adds_up(str(tmp_path / "train.py"), f"train: {name}") == adds
    assert adds_up(str(tmp_path / "nowhere.py"), f"train: {name}")


@pytest.mark.parametrize(("wrong", "is_same"), [(0, True), (0.5, False)])
def test_a_name_that_holds_the_last_value_may_be_given_it_once_in_some_steps(
    tmp_path: Path, wrong: float, is_same: bool
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    for name, may in (("d_x", True), ("total", False)):
        key = (str(tmp_path / "train.py"), f"train: {name}")
        each = {key: [HeldNumber((step, END), PYTHON, step * 1.5) for step in range(STEPS)]}
        some = {key: [HeldNumber((step, END), PYTHON, step * 1.5 + wrong) for step in range(0, STEPS, 3)]}
        assert (names_apart(each, some, MOMENTS)[key] == 0) == (may and is_same)


def test_what_was_no_number_as_written_is_not_compared() -> None:
    assert names_apart(held(SUMS, TENSOR), held([0.0] * STEPS), MOMENTS) == {}
    assert names_apart(held(SUMS), {}, MOMENTS) == {}


class Meter:
    def __init__(self) -> None:
        self.sum = torch.tensor(3.5)
        self.of_kinds = {"cat": 2, "dog": [True, None]}
        self.itself = self


def test_numbers_are_found_in_frames_lists_and_objects_of_the_programs_own() -> None:
    total, meter, history, torch_own = 1.5, Meter(), [0.25, torch.ones(1), torch.ones(2)], SimpleNamespace(x=1)
    noted = NamesHeld()
    noted.look(sys._getframe(), 0, ends=False)
    total += 1
    noted.look(sys._getframe(), 0, ends=True)
    noted.look(sys._getframe(), 1, ends=False)
    moments, found = held_of(noted.found(1))
    here = {
        name.partition(": ")[2]: [(one.moment, one.by, one.number) for one in numbers]
        for (path, name), numbers in found.items()
        if path == __file__ and "test_numbers_are_found" in name
    }
    assert moments == [(0, 0), (0, END)]
    assert here["total"] == [((0, 0), PYTHON, 1.5), ((0, END), PYTHON, 2.5)]
    assert here["meter.sum"] == [((0, 0), TENSOR, 3.5)]
    assert here["meter.of_kinds['cat']"] == [((0, 0), PYTHON, 2.0)]
    assert here["meter.of_kinds['dog'][0]"] == [((0, 0), PYTHON, 1.0)]
    assert here["history)"] == [((0, 0), PYTHON, 3.0)]  # len(...: history)
    assert [here["history[0]"][0][2], here["history[1]"][0][2]] == [0.25, 1.0]
    assert not {"history[2]", "torch_own.x", "meter.itself.sum"} & here.keys()
    assert (total, len(history), torch_own.x) == (2.5, 3, 1)
    assert meter.itself is meter


def test_to_look_at_numbers_warns_of_none_of_them(recwarn: pytest.WarningsRecorder) -> None:
    grad_norm, waves = torch.ones((), requires_grad=True), np.ones(2, np.complex64)
    noted = NamesHeld()
    noted.look(sys._getframe(), 0, ends=True)
    names = {name.partition(": ")[2] for (path, name) in held_of(noted.found(1))[1]}
    assert "grad_norm" in names
    assert not any(name.startswith("waves") for name in names)
    assert (grad_norm.requires_grad, len(waves), len(recwarn)) == (True, 2, 0)


def test_a_program_that_holds_much_is_looked_at_in_part() -> None:
    much = [[[["word"] * 32] * 32] * 32] * 32  # a million values, none of which is a number
    noted = NamesHeld()
    assert lines_run(noted.look, sys._getframe(), 0, False) < 100 * MOST
    assert len(much) == 32


def test_an_object_of_the_programs_own_is_seen_where_a_library_holds_it(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "trainer.py"
    library.parent.mkdir()
    library.write_text("def fit(model, look):\n    look()\n")
    names: dict[str, Any] = {}
    exec(compile(library.read_text(), library, "exec"), names)
    noted = NamesHeld()
    names["fit"](Meter(), lambda: noted.look(sys._getframe(1), 0, ends=True))
    _, found = held_of(noted.found(1))
    assert [one.number for one in found[__file__, "Meter: self.sum"]] == [3.5]
