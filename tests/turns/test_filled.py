"""Lists that a version fills with numbers and another with tensors, while both take turns in one process."""

import textwrap
from typing import Any

import pytest
import torch

from syncscope.turns.filled import Lists
from syncscope.turns.selector import Selector
from syncscope.turns.weaving import Woven, weave

FILLED = """
def train(steps, batches, step):
    seen = []
    for epoch in range(2):
        losses = []
        for batch in range(batches):
            step()
            losses.append((steps + batch).float().item())
        seen.append(sum(losses) / len(losses))
    return seen
"""
LATER = FILLED.replace(".item()", ".detach()").replace(
    "        seen", "        losses = torch.stack(losses).tolist()\n        seen"
)
READ_MEANWHILE = """
class Meter:
    def __init__(self):
        self.losses = []

    def update(self, loss):
        self.losses += [loss.item()]
        return max(self.losses)
"""
READ_LATER = READ_MEANWHILE.replace(".item()", ".detach()").replace(
    "max(self.losses)", "torch.stack(self.losses).max().item()"
)


@pytest.fixture
def selector() -> Selector:
    chosen = Selector()
    chosen.install()
    return chosen


def woven(before: str, after: str) -> tuple[Woven, dict[str, Any]]:
    """The file, and its names."""
    made = weave("train.py", textwrap.dedent(before).encode(), {1: textwrap.dedent(after).encode()})
    names: dict[str, Any] = {"torch": torch}
    exec(compile(made.tree, "train.py", "exec"), names)
    return made, names


def test_a_version_may_finish_what_it_has_not_filled() -> None:
    lists, losses = Lists(), [1.0, 2.0]
    lists.alike(0, "losses", 1, True, losses)
    assert losses == [1.0, 2.0]  # as long as no tensor says where they are to lie
    lists.finish(1, "losses", 1, True, losses)
    assert torch.stack(losses).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("first", [0, 1])
def test_a_list_that_both_have_filled_is_finished_by_either(selector: Selector, first: int) -> None:
    _, names = woven(FILLED, LATER)
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        selector.version = (count + first) % 2

    assert names["train"](torch.tensor(1.0), 5, step) == [3.0, 3.0]
    assert names["train"](torch.tensor(1.0), 4, lambda: None) == [2.5, 2.5]


def test_what_is_read_of_a_list_meanwhile_is_of_the_version_that_reads(selector: Selector) -> None:
    _, names = woven(READ_MEANWHILE, READ_LATER)
    meter = names["Meter"]()
    for number, version in enumerate((0, 1, 1, 0, 0, 1, 0)):
        selector.version = version
        if number == 1:  # of the first tensors nothing is known before there is one
            meter.losses.append(torch.tensor(0.0))
        assert meter.update(torch.tensor(float(number))) == number
        kinds = {type(one) for one in meter.losses}
        assert kinds == {torch.Tensor if version else float}


def test_what_holds_tensors_as_written_is_left_alone(selector: Selector) -> None:
    kept = READ_MEANWHILE.replace(".item()", "").replace("max(self.losses)", "len(self.losses)")
    _, names = woven(kept, kept.replace("len(self.losses)", "1 * len(self.losses)"))
    meter = names["Meter"]()
    for version in (0, 1, 0):
        selector.version = version
        meter.update(torch.tensor(1.0))
    assert all(isinstance(one, torch.Tensor) for one in meter.losses)


def test_a_version_may_begin_where_the_list_does(selector: Selector) -> None:
    made, names = woven(FILLED, LATER)
    (head,) = made.filled
    selector.head, selector.headed = head, lambda: setattr(selector, "version", 1 - selector.version)
    versions: list[int] = []
    names["train"](torch.tensor(1.0), 3, lambda: versions.append(selector.version))
    assert versions == [1] * 3 + [0] * 3
    assert made.next > max(*made.passages, head)


def test_what_a_version_has_finished_is_not_begun_again_further_on(selector: Selector) -> None:
    """Behind the loop there are two places where it is another: the list holds numbers by the second."""
    told = "        seen.append(sum(losses) / len(losses))\n"
    more = told + "        last = batch\n        kinds = {type(one) for one in losses}\n"
    before, after = (text.replace(told, more).replace("return seen", "return kinds") for text in (FILLED, LATER))
    _, names = woven(before, after.replace("last = batch", "last = batch + 0"))
    for version in (1, 0, 1):
        selector.version = version
        assert names["train"](torch.tensor(1.0), 4, lambda: None) == {float}
